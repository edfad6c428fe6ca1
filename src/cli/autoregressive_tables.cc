// ar_measure.json for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/measure_autoregressive.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_positions = 10;
constexpr std::size_t most_heads = 8;
constexpr std::size_t column_width = 16;

std::string number_text(const OrderedJson& value) {
  return value.is_null() ? "-" : fmt::format("{:.4g}", value.get<double>());
}

class Text {
 public:
  explicit Text(const OrderedJson& measured) : measured_(measured) {}

  void line(const std::string& line) { text_ += line + "\n"; }
  // What the numbers are, and how those of a field are pooled.
  void caption(const std::string& what, const char* field) {
    line(fmt::format("\n{} (epsilon {}; {})", what, number_text(measured_.at("epsilon")),
                     measured_.at("aggregation").at(field).get<std::string>()));
  }
  void row(const std::vector<std::string>& cells) {
    text_ += "  ";
    for (const std::string& cell : cells) text_ += fmt::format("{:>{}}", cell, column_width);
    text_ += "\n";
  }
  const std::string& text() const { return text_; }

 private:
  const OrderedJson& measured_;
  std::string text_;
};

double mean_of(const OrderedJson& row) {
  double sum = 0;
  for (const OrderedJson& value : row) sum += value.get<double>();
  return sum / static_cast<double>(row.size());
}

void add_legend(Text& text, const OrderedJson& m) {
  const OrderedJson& model = m.at("model");
  text.line(fmt::format("{} ({}, {}): {} sequences of {} tokens, {}, {} layers x {} heads",
                        model.at("name").get<std::string>(), model.at("family").get<std::string>(),
                        model.at("dtype").get<std::string>(), m.at("samples").dump(), m.at("length").dump(),
                        m.at("sequences").get<std::string>(), model.at("layers").dump(),
                        model.at("heads").dump()));
}

void add_positions(Text& text, const OrderedJson& m) {
  text.caption("Sinks by position, percent", "sinks");
  text.row({"position", "sink rate", "standard error", "alpha"});
  const OrderedJson& sinks = m.at("sinks");
  for (std::size_t k = 0; k < std::min(sinks.size(), most_positions); ++k)
    text.row({std::to_string(k), number_text(sinks[k].at("sink_rate")),
              number_text(sinks[k].at("standard_error")), number_text(sinks[k].at("alpha"))});
  if (const OrderedJson& slot = m.at("slot"); !slot.is_null())
    text.row({"slot", number_text(slot.at("sink_rate")), "-", number_text(slot.at("alpha"))});
}

// Layer l of the model; the ratio of the residual stream is the one that enters it.
void add_layers(Text& text, const OrderedJson& m) {
  text.caption(
      fmt::format("Layers, key {}: alpha and sink rate are means over heads, norms are over the mean of the "
                  "other positions, hidden entering the layer",
                  m.at("position").dump()),
      "massive_ratio");
  text.row({"layer", "alpha", "sink rate", "hidden", "key", "value"});
  const std::size_t layers = m.at("alpha").size();
  for (std::size_t l = 0; l < layers; ++l)
    text.row({std::to_string(l), number_text(mean_of(m.at("alpha")[l])),
              number_text(mean_of(m.at("sink_rate")[l])), number_text(m.at("massive_ratio")[l]),
              number_text(m.at("key_ratio")[l]), number_text(m.at("value_ratio")[l])});
  text.row({"behind", "-", "-", number_text(m.at("massive_ratio")[layers]), "-", "-"});
}

void add_query_key(Text& text, const OrderedJson& m) {
  if (m.at("query_key").is_null()) {
    text.line("\nThis model's scores are not made of q.k, so that is not split into norms and cosine.");
    return;
  }
  text.caption(fmt::format("q.k as norms and cosine, key {} against the others, means over heads",
                           m.at("position").dump()),
               "query_key");
  text.row({"layer", "cosine", "others", "norm product", "others"});
  const OrderedJson& split = m.at("query_key");
  for (std::size_t l = 0; l < split.at("cosine").size(); ++l) {
    std::vector<std::string> cells{std::to_string(l)};
    for (const char* name : {"cosine", "other_cosine", "norm_product", "other_norm_product"})
      cells.push_back(number_text(mean_of(split.at(name)[l])));
    text.row(cells);
  }
}

struct Head {
  std::size_t layer, head;
  double alpha;
};

void add_heads(Text& text, const OrderedJson& m) {
  std::vector<Head> heads;
  const OrderedJson& map = m.at("alpha");
  for (std::size_t l = 0; l < map.size(); ++l)
    for (std::size_t h = 0; h < map[l].size(); ++h) heads.push_back({l, h, map[l][h].get<double>()});
  std::stable_sort(heads.begin(), heads.end(),
                   [](const Head& a, const Head& b) { return a.alpha > b.alpha; });
  heads.resize(std::min(heads.size(), most_heads));
  text.caption(fmt::format("Heads with the largest alpha of key {}", m.at("position").dump()), "alpha");
  text.row({"layer", "head", "alpha", "sink rate"});
  for (const Head& head : heads)
    text.row({std::to_string(head.layer), std::to_string(head.head), fmt::format("{:.4g}", head.alpha),
              number_text(m.at("sink_rate")[head.layer][head.head])});
}

}  // namespace

std::string autoregressive_text(const OrderedJson& measured) {
  Text text(measured);
  add_legend(text, measured);
  add_positions(text, measured);
  add_layers(text, measured);
  add_query_key(text, measured);
  add_heads(text, measured);
  return text.text();
}

}  // namespace sinkscope
