// What `plot` is asked for.
#pragma once

#include <sinkscope/number_ranges.h>
#include <sinkscope/run_directory.h>
#include <sinkscope/sinks.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draw/picture.h"

namespace sinkscope {

/// Widths of pictures in a paper, mm: of a column, of the page.
constexpr double single_column = 86, double_column = 178;

/// How many maps become one number.
enum class Aggregate { mean, maximum };

/// Throws UsageError unless it is "mean" or "max".
Aggregate parse_aggregate(std::string_view name);
std::string_view name_of(Aggregate aggregate);

struct PlotOptions {
  std::vector<std::filesystem::path> runs;
  std::vector<std::string> figures;  ///< empty: all that the runs allow
  std::filesystem::path out;
  PictureStyle style;            ///< width and height: see below
  std::optional<double> width;   ///< mm; else a column of a page, or two for figures of several panels
  std::optional<double> height;  ///< mm; else the figure's own
  DetectionOptions detection;
  Aggregate aggregate = Aggregate::mean;
  std::optional<std::int64_t> sample;  ///< its `index`; else the first one, of pooled figures all
  std::optional<std::int64_t> step;    ///< of attention maps
  NumberRanges layers, heads;
  std::optional<std::string> metric;  ///< "METRIC,FILTER" of evaluations
  bool compare = false;
};

struct PlotCallbacks {
  /// A printable name of a token of a run; none where its tokenizer is not there.
  std::function<std::optional<std::string>(const RunInfo& run, std::int32_t id)> token_text;
  /// How far the reading is.
  std::function<void(std::size_t done, std::size_t all)> progress;
  /// Something the user should know.
  std::function<void(const std::string& line)> note;
};

}  // namespace sinkscope
