// The numbers of recorded runs that figures are made of, from one pass over their samples.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "draw/plot_options.h"
#include "measure/recorded_run.h"
#include "measure/row_steps.h"
#include "measure/sample_steps.h"
#include "measure/sums.h"

namespace sinkscope {

/// Layers and heads that are looked at, ascending.
struct MapChoice {
  std::vector<std::size_t> layers, heads;

  std::size_t maps() const { return layers.size() * heads.size(); }
};

/// The folder's own name, however it was written: "runs/a" and "runs/a/" give "a".
std::string label_of(const std::filesystem::path& folder);

/// The label as file names and pictures can bear it: in one line, at most 100 bytes, not hidden; with -2, -3,
/// ... behind it while it is taken; then it is taken.
std::string free_label(const std::string& wanted, std::set<std::string>& taken);

/// A run opened, nothing of its samples read.
struct PlotRun {
  std::string label;  ///< the folder's name
  RecordedRun recorded;
  bool rows = false;  ///< of an autoregressive model
  MapChoice choice;
  std::int64_t sample = 0;            ///< of figures of one sample
  std::vector<std::int64_t> samples;  ///< of pooled figures
};

/// Throws Error naming the folder and what is wrong with it, UsageError naming an option that asks for a
/// layer, head or sample that the run does not have.
PlotRun open_plot_run(const std::filesystem::path& folder, const PlotOptions& options,
                      const PlotCallbacks& callbacks);

/// All of options.runs, which must be run directories, with labels that differ.
std::vector<PlotRun> open_plot_runs(const PlotOptions& options, const PlotCallbacks& callbacks);

/// A sample's forwards: of a diffusion model, or tokens of an autoregressive one.
class PlotSteps {
 public:
  PlotSteps(const PlotRun& run, std::int64_t sample);
  const SampleShape& shape() const;
  void read(std::size_t t, Step& step) const;

 private:
  std::variant<SampleSteps, RowSteps> steps_;
};

/// The step with the chosen maps only; layers and heads are counted anew.
void choose_maps(Step& step, const MapChoice& choice);

/// One sample over its steps, the chosen maps.
struct SampleView {
  SampleShape shape;  ///< layers and heads: how many are chosen
  RecordedStates states;
  Matrix columns;  ///< [T,S] C over the maps, on the scale; NaN where there is no such key yet
  std::vector<std::uint16_t> sinks;  ///< [T,S] in how many of the maps the position is a sink
  std::vector<int> largest;          ///< [T, maps] the largest sink, -1
  std::vector<double> top;           ///< [maps] mean over steps of its C, 0 where there is none

  std::optional<std::int32_t> mask_id;

  std::int32_t id(std::size_t t, std::size_t j) const { return states.ids[t * states.positions + j]; }
  bool masked(std::size_t t, std::size_t j) const { return mask_id && id(t, j) == *mask_id; }
};

/// How many cells have which C, on the scale.
struct ValueHistogram {
  double width = 0;  ///< of a bin; the first begins at 0
  std::vector<std::uint64_t> counts;
};

/// Which of the following a figure needs; what is not needed is not computed.
struct Needs {
  bool view = false;    ///< of one sample
  bool share = false;   ///< shares, layers, heads
  bool tracks = false;  ///< lives and jumps
  bool tokens = false;
  bool overlap = false;
  bool histogram = false;

  bool pooled() const { return share || tracks || tokens || overlap || histogram; }
};

struct RunNumbers {
  explicit RunNumbers(const DetectionOptions& detection) : share(detection) {}

  SampleView view;
  ShareSums share;
  TrackSums tracks;
  TokenSums tokens;
  OverlapSums overlap;
  ValueHistogram histogram;
};

/// Reads each sample once. `done` is called after each.
RunNumbers collect_numbers(const PlotRun& run, const PlotOptions& options, const Needs& needs,
                           const std::function<void()>& done);

}  // namespace sinkscope
