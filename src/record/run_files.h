// What the parts of a run directory share.
#pragma once

#include <sinkscope/run_directory.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sinkscope {

constexpr const char* run_json_name = "run.json";
constexpr const char* samples_name = "samples.jsonl";

/// samples.jsonl, taken apart.
struct SampleLines {
  std::vector<SampleRecord> records;
  std::vector<std::string> lines;  ///< of the same samples, each with its line break
  std::uint64_t sound_bytes = 0;  ///< what stands before a torn last line; the file's size where none is torn
};

/// A last line that lacks its line break or cannot be read is what a crash leaves, and is left out. Any other
/// fault throws Error naming the line.
SampleLines read_sample_lines(const std::filesystem::path& file);

/// Removes the temporary files and folders that an interrupted run left.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace sinkscope
