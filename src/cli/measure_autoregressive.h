// `sinkscope measure --ar MODEL`: sinks and norms of an autoregressive model on texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/model_options.h"
#include "cli/option_table.h"

namespace sinkscope {

struct ModelMeasureOptions {
  std::string model;  // empty: runs are measured
  std::string text;
  std::string sequences = "natural";
  std::int64_t samples = 100;
  std::int64_t length = 64;
  std::int64_t position = 0;
  std::int64_t seed = 0;
  double epsilon = 0.3;
  ModelOptions common;
};

/// Declares them but for --epsilon, which measuring runs has too.
void declare_autoregressive_options(OptionTable& table, ModelMeasureOptions& options);

/// Throws UsageError naming the first of the options that was given without --ar.
void refuse_autoregressive_options(const CLI::App& command);

/// The content of ar_measure.json. Throws UsageError for options that cannot be and for a model that is not
/// autoregressive, Error for a file without a text that is long enough.
nlohmann::ordered_json measure_autoregressive(const ModelMeasureOptions& options);

/// Tables of it, for a terminal.
std::string autoregressive_text(const nlohmann::ordered_json& measured);

}  // namespace sinkscope
