// The figures that recorded runs of models give, one function each. docs/plot.md describes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "draw/figure.h"
#include "draw/recorded.h"

namespace sinkscope {

/// A run with what was read of it.
struct FigureInput {
  const PlotRun& run;
  const RunNumbers& numbers;
  const PlotOptions& options;
  const PlotCallbacks& callbacks;
};

/// Position x step: C of one sample over its chosen maps, the step at which each position is unmasked.
Figure heat_map_figure(const FigureInput& input);
/// Position of the largest sink against the step, a line for each of a few heads.
Figure tracks_figure(const FigureInput& input);
/// Whole maps of one layer and head before and after a step; needs map_L{l}_H{h}.
Figure maps_figure(const FigureInput& input);
/// Layer x head: C of the largest sink, mean over samples and steps with one.
Figure layer_head_figure(const FigureInput& input);
/// How many cells have which C.
Figure histogram_figure(const FigureInput& input);
/// Share of cells that are no sinks against the rule's threshold.
Figure epsilon_figure(const FigureInput& input);
/// Mean number of sinks of a head against depth.
Figure layers_figure(const FigureInput& input);
/// Share of all attention that sinks take, against depth.
Figure absorption_figure(const FigureInput& input);
/// How many lives last how many steps.
Figure lifetimes_figure(const FigureInput& input);
/// How far the largest sink jumps.
Figure jumps_figure(const FigureInput& input);
/// Tokens that are sinks most often, with their share of all positions and the lift.
Figure tokens_figure(const FigureInput& input);
/// Where in the row sinks stand, in tenths, with the lift.
Figure positions_figure(const FigureInput& input);

/// Why a run has no such figure; empty where it has.
std::string maps_refusal(const PlotRun& run, const PlotOptions& options);
std::string epsilon_refusal(const PlotRun& run, const PlotOptions& options);

struct FigureKind {
  std::string_view name;
  std::string_view what;  ///< a line for the help
  Needs needs;
  Figure (*make)(const FigureInput& input);
  std::string (*refusal)(const PlotRun& run, const PlotOptions& options);  ///< null: always there
};

/// In the order in which they are drawn.
std::span<const FigureKind> figure_kinds();

// What the figures share.

/// "C", its unit and what 1 means, of a run on the scale asked for.
std::string value_title(const FigureInput& input);
/// "mean of 4 layers x 8 heads", "layer 3, head 1".
std::string maps_text(const FigureInput& input);
/// "sample 3", "12 samples".
std::string samples_text(const FigureInput& input);
/// "sink: C > mean of the others + 3".
std::string rule_text(const DetectionOptions& options);
/// An empty figure whose part has the run's label, its model, what was looked at, and whose aggregation has
/// the rule.
Figure begin_figure(const FigureInput& input, std::string_view name, std::string_view title);
/// The printable text of a token, empty where it is not known.
std::string token_text(const FigureInput& input, std::int32_t id);

}  // namespace sinkscope
