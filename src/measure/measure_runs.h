// Runs measured one by one, and pooled: what measure.json holds (docs/measure.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "measure/sums.h"

namespace sinkscope {

/// What the caller knows more than the room: texts of tokens, where the progress goes.
struct MeasureCallbacks {
  /// A printable name of a token of a run; none where its tokenizer is not there.
  std::function<std::optional<std::string>(const RunInfo& run, std::int32_t id)> token_text;
  /// How many samples of all runs together are done.
  std::function<void(std::size_t done, std::size_t all)> progress;
  /// Something the user should know about a run that is measured all the same.
  std::function<void(const std::string& line)> note;
};

/// The content of measure.json: one object for each run in `runs`, in their order; all of them together in
/// `pooled`; and, where they are of several models, each model's together in `models`. Memory does not grow
/// with the number of samples: they are read step by step, one after the other. Throws Error naming the
/// folder, file and array at fault, UsageError for a run that is given twice.
nlohmann::ordered_json measure_runs(const std::vector<std::filesystem::path>& folders,
                                    const MeasureOptions& options, const MeasureCallbacks& callbacks);

}  // namespace sinkscope
