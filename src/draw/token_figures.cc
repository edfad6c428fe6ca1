// Figures of the tokens that are sinks, and of where they stand.
#include <fmt/format.h>

#include <algorithm>

#include "draw/figures.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_tokens = 12;

double ratio(double part, double all) { return all == 0 ? 0 : part / all; }

struct Lift {
  double frequency = 0, share = 0, lift = 0;
};

Lift lift_of(const TokenCount& count, const TokenCount& all) {
  const double frequency = ratio(static_cast<double>(count.sinks), static_cast<double>(all.sinks));
  const double share = ratio(static_cast<double>(count.positions), static_cast<double>(all.positions));
  return {frequency, share, ratio(frequency, share)};
}

Figure begin_counts(const FigureInput& input, const char* name, const char* title) {
  Figure figure = begin_figure(input, name, title);
  figure.note = fmt::format("{}; {}; number: lift = share of the sinks / share of the positions",
                            rule_text(input.options.detection), samples_text(input));
  figure.parts[0].about["samples"] = input.run.samples;
  return figure;
}

constexpr const char* sinks_title = "share of the sinks";
constexpr const char* positions_title = "share of the positions";
constexpr const char* positions_colour = "#bbbbbb";

std::string number_text(double lift) {
  return lift >= 100 ? fmt::format("{:.0f}", lift) : fmt::format("{:.{}f}", lift, lift < 1 ? 2 : 1);
}

}  // namespace

Figure tokens_figure(const FigureInput& input) {
  const TokenSums& sums = input.numbers.tokens;
  Figure figure = begin_counts(input, "tokens", "which tokens are sinks");
  figure.columns = {"id", "text", "frequency", "share", "lift"};
  figure.aggregation["value"] =
      "frequency: sinks added up over samples, steps, layers and heads / all sinks; share: positions with "
      "the "
      "token over samples and steps / all positions; the most frequent ones";
  std::vector<std::pair<std::int32_t, TokenCount>> found;
  for (const auto& entry : sums.by_id)
    if (entry.second.sinks > 0) found.emplace_back(entry);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second.sinks > b.second.sinks; });
  if (found.size() > most_tokens) found.resize(most_tokens);
  Panel panel;
  Boxes sinks{sinks_title, {}, curve_colour(0)}, positions{positions_title, {}, positions_colour};
  double longest = 0.01;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [id, count] = found[i];
    const Lift lift = lift_of(count, sums.all);
    const std::string text = token_text(input, id);
    const auto y = static_cast<double>(i);
    figure.parts[0].rows.push_back(
        {id, text.empty() ? OrderedJson(nullptr) : OrderedJson(text), lift.frequency, lift.share, lift.lift});
    panel.y.ticks.push_back({y, text.empty() ? fmt::format("id {}", id) : shortened(text, 14)});
    sinks.boxes.push_back({0, lift.frequency, y - 0.38, y});
    positions.boxes.push_back({0, lift.share, y, y + 0.38});
    panel.texts.push_back({std::max(lift.frequency, lift.share), y, " " + number_text(lift.lift)});
    longest = std::max({longest, lift.frequency, lift.share});
  }
  panel.x = {"share", 0, 1.18 * longest};
  panel.y.from = std::max(1.0, static_cast<double>(found.size())) - 0.4;
  panel.y.to = -0.6;
  panel.boxes = {std::move(sinks), std::move(positions)};
  figure.parts[0].panels.push_back(std::move(panel));
  figure.height = 75;
  return figure;
}

Figure positions_figure(const FigureInput& input) {
  const TokenSums& sums = input.numbers.tokens;
  Figure figure = begin_counts(input, "positions", "where in the row sinks stand");
  figure.columns = {"from", "to", "frequency", "share", "lift"};
  figure.aggregation["value"] =
      "frequency: sinks added up over samples, steps, layers and heads / all sinks; share: positions over "
      "samples and steps / all positions; tenths of each row";
  Panel panel;
  Boxes sinks{sinks_title, {}, curve_colour(0)}, positions{positions_title, {}, positions_colour};
  double highest = 0.01;
  for (std::size_t i = 0; i < place_count; ++i) {
    const Lift lift = lift_of(sums.by_place[i], sums.all);
    const double from = static_cast<double>(i) / place_count, to = static_cast<double>(i + 1) / place_count;
    figure.parts[0].rows.push_back({from, to, lift.frequency, lift.share, lift.lift});
    const double middle = (from + to) / 2, width = 0.4 / place_count;
    sinks.boxes.push_back({middle - width, middle, 0, lift.frequency});
    positions.boxes.push_back({middle, middle + width, 0, lift.share});
    highest = std::max({highest, lift.frequency, lift.share});
    panel.texts.push_back({middle, std::max(lift.frequency, lift.share), number_text(lift.lift), true});
  }
  for (PanelText& text : panel.texts) text.y += 0.05 * highest;
  panel.x = {"place in the row", 0, 1};
  panel.y = {"share", 0, 1.15 * highest};
  panel.boxes = {std::move(sinks), std::move(positions)};
  figure.parts[0].panels.push_back(std::move(panel));
  return figure;
}

}  // namespace sinkscope
