// Two runs over the same prompts: where they part, and what that cost (sinks.md 5.7).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "measure/csv_tables.h"

namespace sinkscope {

struct CompareOptions {
  std::size_t resamples = 10000;  ///< of the bootstrap intervals
  std::uint64_t seed = 0;         ///< of their draws
};

struct CompareCallbacks {
  std::function<void(std::size_t done, std::size_t all)> progress;
  /// Something the user should know about runs that are compared all the same.
  std::function<void(const std::string& line)> note;
};

/// The content of compare.json (docs/compare.md). Samples are read one pair after the other; what is kept of
/// each is its numbers. Throws Error naming the folder, file and array at fault, and where the runs have no
/// sample in common.
nlohmann::ordered_json compare_runs(const std::filesystem::path& a, const std::filesystem::path& b,
                                    const CompareOptions& options, const CompareCallbacks& callbacks);

/// samples.csv: a row for each sample, what is null an empty field.
CsvTable compared_samples(const nlohmann::ordered_json& compared);

}  // namespace sinkscope
