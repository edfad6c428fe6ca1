// A run directory as the commands that look at recorded runs open it.
#pragma once

#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct RecordedRun {
  std::filesystem::path folder;
  RunInfo info;
  std::vector<SampleRecord> samples;  ///< by `index`
};

/// Throws Error naming the folder and the file at fault, and where no sample is finished. `note` hears of a
/// run that was interrupted, whose finished samples are `done` ("measured") all the same; it may be empty.
RecordedRun open_recorded_run(const std::filesystem::path& folder, std::string_view done,
                              const std::function<void(const std::string&)>& note);

/// What the run did to its sinks; null where it did nothing. `rank` is null where options do not tell it.
nlohmann::ordered_json intervention_json(const RunInfo& info);

/// `states` and `prompt_length` of a sample.
struct RecordedStates {
  std::size_t steps = 0;      ///< T
  std::size_t positions = 0;  ///< S
  std::size_t prompt_length = 0;
  std::vector<std::int32_t> ids;  ///< [T+1,S]
};

/// Throws Error naming the file (`where`) and the array that is missing or has another type or shape. What
/// the ids may be is the caller's.
RecordedStates read_states(const NpzFile& file, const std::string& where);

/// "[3,4]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace sinkscope
