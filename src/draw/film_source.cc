#include "draw/film_source.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "measure/csv_tables.h"

namespace sinkscope {
namespace {

constexpr std::array<const char*, status_count> status_colours{"#56b4e9", "#0072b2", "#bbbbbb"};
constexpr const char* new_colour = "#d55e00";
constexpr std::size_t most_text_columns = 24;  // of a token

// Share of the maps in which a position is a sink, as a ground: in any, in a tenth, in half of them.
int ground_of(std::size_t sinks, std::size_t maps) {
  if (sinks == 0) return 0;
  if (2 * sinks >= maps) return 3;
  return 10 * sinks >= maps ? 2 : 1;
}

}  // namespace

FilmSource::FilmSource(const PlotRun& run, const PlotOptions& options, const PlotCallbacks& callbacks,
                       bool maps)
    : run_(run), numbers_(options.detection) {
  const FigureInput input{run, numbers_, options, callbacks};
  value_title_ = value_title(input);
  maps_text_ = maps_text(input);
  PlotRun chosen = run;
  if (maps) {
    maps_ = std::make_unique<MapFile>(run);
    chosen.choice = {{maps_->layer()}, {maps_->head()}};
    maps_text_ = fmt::format("layer {}, head {}", maps_->layer(), maps_->head());
  }
  numbers_ = collect_numbers(chosen, options, Needs{.view = true}, [] {});
  const SampleView& view = numbers_.view;
  largest_ = largest_value(view.columns);
  if (maps_) largest_ = 0;
  for (std::size_t t = 0; maps_ && t < maps_->steps(); ++t)
    largest_ = std::max(largest_, static_cast<double>(largest_value(maps_->map(t))));
  ids_.assign(view.states.ids.begin(), view.states.ids.end());
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  for (const std::int32_t id : ids_) {
    std::string name = token_text(input, id);
    if (name.empty() && id >= 0) name = fmt::format("<{}>", id);
    names_.push_back(shortened(name, most_text_columns));
  }
  for (std::size_t j = 0; j < view.states.positions; ++j) {
    std::size_t widest = 1;
    for (std::size_t t = 0; t <= view.shape.steps; ++t)
      if (!view.masked(t, j)) widest = std::max(widest, text_columns(name_of_id(view.id(t, j))));
    columns_.push_back(widest);
  }
}

const std::string& FilmSource::name_of_id(std::int32_t id) const {
  return names_[static_cast<std::size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin())];
}

std::string FilmSource::title() const {
  return fmt::format("{}, {}, sample {}", maps_ ? "attention" : value_title_, maps_text_, run_.sample);
}

std::size_t FilmSource::status(std::size_t t, std::size_t j) const {
  if (numbers_.view.masked(t, j)) return static_cast<std::size_t>(TokenStatus::masked);
  return static_cast<std::size_t>(j < numbers_.view.states.prompt_length ? TokenStatus::prompt
                                                                         : TokenStatus::decoded);
}

Panel FilmSource::panel(std::size_t step, double top, std::size_t most_bars) const {
  const std::size_t t = std::min(step, steps() - 1);
  Panel panel = maps_ ? Panel() : columns_panel(t, top, most_bars);
  if (maps_) {
    panel.x = cells_axis("key", maps_->positions());
    panel.y = cells_axis("query", maps_->positions(), /*down=*/true);
    panel.matrix = maps_->map(t);
  }
  panel.title = fmt::format("{}: {} {}", run_.label, run_.rows ? "token" : "step", t);
  return panel;
}

Panel FilmSource::columns_panel(std::size_t t, double top, std::size_t most_bars) const {
  const SampleView& view = numbers_.view;
  const std::size_t count = view.shape.positions, factor = pooling_factor(count, most_bars);
  Panel panel;
  panel.x = cells_axis("position", count);
  panel.y = {value_title_, -0.06 * top, 1.05 * top};
  for (std::size_t c = 0; c < status_count; ++c)
    panel.boxes.push_back({c == 1 ? "written" : status_names[c], {}, status_colours[c]});
  if (run_.rows) panel.boxes.back().title.clear();  // has no masks
  for (std::size_t first = 0; first < count; first += factor) {
    std::size_t best = first;
    int ground = 0;
    for (std::size_t j = first; j < std::min(first + factor, count); ++j) {
      if (view.columns.at(t, j) > view.columns.at(t, best)) best = j;
      ground = std::max(ground, ground_of(view.sinks[t * count + j], view.shape.maps()));
    }
    const float value = view.columns.at(t, best);
    if (std::isnan(value)) continue;
    const double left = static_cast<double>(first) - 0.5, right = left + static_cast<double>(factor);
    const double gap = factor == 1 && count <= 256 ? 0.08 : 0;
    panel.boxes[status(t, best)].boxes.push_back({left + gap, right - gap, 0, value});
    if (ground >= 2) panel.marks.emplace_back((left + right) / 2, -0.03 * top);
  }
  return panel;
}

std::vector<FlowingText> FilmSource::text(std::size_t step, bool labelled) const {
  const SampleView& view = numbers_.view;
  const std::size_t t = std::min(step, steps() - 1);
  std::vector<FlowingText> text;
  if (labelled) {
    const std::string label = shortened(run_.label, most_text_columns) + ": ";
    text.push_back({label, text_columns(label), "#0072b2"});
  }
  for (std::size_t j = 0; j < view.states.positions; ++j) {
    FlowingText token{name_of_id(view.id(t + 1, j)), columns_[j], "#000000"};
    if (view.masked(t + 1, j)) {
      token.text.clear();
      for (std::size_t i = 0; i < columns_[j]; ++i) token.text += "░";
      token.colour = "#999999";
    } else if (step < steps() && view.id(t + 1, j) != view.id(t, j)) {
      token.colour = new_colour;
    } else if (j < view.states.prompt_length) {
      token.colour = "#4d4d4d";
    }
    if (j < view.shape.positions)
      token.ground = ground_of(view.sinks[t * view.shape.positions + j], view.shape.maps());
    text.push_back(std::move(token));
  }
  text.front().begins_line = true;
  return text;
}

std::string FilmSource::csv_lines() const {
  const SampleView& view = numbers_.view;
  std::string head = csv_line({run_.label}), lines;
  head.back() = ',';
  for (std::size_t t = 0; t < steps(); ++t)
    for (std::size_t j = 0; j < view.shape.positions; ++j) {
      const float value = view.columns.at(t, j);
      if (std::isnan(value)) continue;
      fmt::format_to(std::back_inserter(lines), "{}{},{},{},{},{},{}\n", head, t, j, view.id(t, j),
                     status_names[status(t, j)], value, view.sinks[t * view.shape.positions + j]);
    }
  return lines;
}

}  // namespace sinkscope
