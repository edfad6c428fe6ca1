// What a film shows of one run at each step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "draw/figures.h"
#include "draw/map_file.h"

namespace sinkscope {

class FilmSource {
 public:
  /// `maps`: whole maps in the place of columns. Reads the sample's columns, step by step.
  FilmSource(const PlotRun& run, const PlotOptions& options, const PlotCallbacks& callbacks, bool maps);

  const PlotRun& run() const { return run_; }
  std::size_t steps() const { return numbers_.view.shape.steps; }
  const SampleView& view() const { return numbers_.view; }
  const MapFile* maps() const { return maps_.get(); }
  std::string title() const;

  /// The largest value of all steps.
  double largest() const { return largest_; }

  /// The picture's panel of a step; beyond the last one, the last. Columns are drawn on y from 0 to `top`,
  /// as at most `most_bars` bars, each the maximum of its positions.
  Panel panel(std::size_t step, double top, std::size_t most_bars) const;

  /// The text as it is after a step: masks as ░, what was written in this step in colour, sinks of the step
  /// on a ground. The place that a token takes does not change from step to step. `labelled`: behind the
  /// run's label.
  std::vector<FlowingText> text(std::size_t step, bool labelled) const;

  /// Rows of the table: step, position, id, status, value, sinks.
  std::string csv_lines() const;

 private:
  std::size_t status(std::size_t t, std::size_t j) const;
  Panel columns_panel(std::size_t t, double top, std::size_t most_bars) const;

  const PlotRun& run_;
  RunNumbers numbers_;
  std::unique_ptr<MapFile> maps_;
  double largest_ = 0;
  std::string value_title_, maps_text_;
  std::vector<std::string> names_;    // of ids, in the order of ids_
  std::vector<std::int32_t> ids_;     // ascending
  std::vector<std::size_t> columns_;  // [positions of states] that each position's text takes
  const std::string& name_of_id(std::int32_t id) const;
};

/// Rows, columns and title of values that the CSV has.
constexpr const char* film_csv_head = "run,step,position,id,status,value,sinks\n";

}  // namespace sinkscope
