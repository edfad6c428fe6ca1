#include "cli/measure_tables.h"

#include <fmt/format.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <vector>

#include "measure/csv_tables.h"
#include "measure/effect.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t name_width = 30;
constexpr std::size_t column_width = 12;
constexpr std::size_t most_tokens = 10;
constexpr std::size_t most_heads = 8;

struct Column {
  std::string name;
  const OrderedJson& result;
};

// Each run, then what is pooled where that is something else.
std::vector<Column> columns_of(const OrderedJson& measured) {
  std::vector<Column> columns;
  const OrderedJson& runs = measured.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) columns.push_back({fmt::format("run {}", i + 1), runs[i]});
  if (measured.contains("models") && measured.at("models").size() < runs.size())
    for (std::size_t i = 0; i < measured.at("models").size(); ++i)
      columns.push_back({fmt::format("model {}", i + 1), measured.at("models")[i]});
  if (runs.size() > 1) columns.push_back({"pooled", measured.at("pooled")});
  return columns;
}

std::string number_text(const OrderedJson& value) {
  if (value.is_null()) return "-";
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

// The rule with its own numbers: "rule paper, scale sum, epsilon 3".
std::string rule_text(const OrderedJson& result) {
  std::string text = "rule " + result.at("rule").get<std::string>();
  text += ", scale " + result.at("scale").get<std::string>();
  for (const char* name : {"epsilon", "z", "steepness", "top_k"})
    if (!result.at(name).is_null()) text += fmt::format(", {} {}", name, number_text(result.at(name)));
  return text;
}

class Text {
 public:
  explicit Text(const OrderedJson& measured) : measured_(measured), rule_(rule_text(measured)) {}

  // A caption: what, how pooled, by which rule.
  void caption(const std::string& what, const std::string& aggregation) {
    const OrderedJson& texts = measured_.at("aggregation");
    text_ += fmt::format("\n{} ({}", what, rule_);
    if (texts.contains(aggregation)) text_ += "; " + texts.at(aggregation).get<std::string>();
    text_ += ")\n";
  }
  void names(const std::string& first, const std::vector<Column>& columns) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(column.name);
    row(first, cells);
  }
  void row(const std::string& name, const std::vector<std::string>& cells) {
    text_ += fmt::format("  {:<{}}", name, name_width);
    for (const std::string& cell : cells) text_ += fmt::format(" {:>{}}", cell, column_width);
    text_ += "\n";
  }
  void line(const std::string& line) { text_ += line + "\n"; }
  const std::string& text() const { return text_; }

 private:
  const OrderedJson& measured_;
  std::string rule_;
  std::string text_;
};

void add_legend(Text& text, const std::vector<Column>& columns) {
  for (const Column& column : columns) {
    const OrderedJson& r = column.result;
    const std::string what = r.contains("run")     ? r.at("run").get<std::string>()
                             : r.contains("model") ? "all runs of the model"
                                                   : "all runs";
    const std::string model = r.value("model", OrderedJson("")).get<std::string>();
    text.line(fmt::format("{}: {}{}{}, {} samples, {} steps, {} layers x {} heads, {} to {} positions",
                          column.name, what, model.empty() ? "" : ", ", model, r.at("samples").dump(),
                          r.at("steps").dump(), number_text(r.at("layers")), number_text(r.at("heads")),
                          r.at("positions").at("least").dump(), r.at("positions").at("most").dump()));
    if (r.contains("intervention") && !r.at("intervention").is_null())
      text.line(fmt::format("  with sinks masked: {}", r.at("intervention").dump()));
  }
}

void add_summary(Text& text, const std::vector<Column>& columns) {
  text.caption("Summary", "");
  text.names("", columns);
  std::vector<std::vector<std::pair<std::string, OrderedJson>>> numbers;
  for (const Column& column : columns) numbers.push_back(summary_of(column.result));
  for (std::size_t i = 0; i < numbers.front().size(); ++i) {
    std::vector<std::string> cells;
    const std::string& name = numbers.front()[i].first;
    for (const auto& of_column : numbers) cells.push_back(number_text(of_column[i].second));
    text.row(name, cells);
  }
  for (const char* status : position_class_names) {
    std::vector<std::string> cells;
    for (const Column& column : columns)
      cells.push_back(number_text(column.result.at("status").at(status).at("frequency")));
    text.row(fmt::format("share of sinks that are {}", status), cells);
  }
}

void add_thresholds(Text& text, const std::vector<Column>& columns) {
  const OrderedJson& grid = columns.front().result.at("share_by_epsilon");
  if (grid.empty()) return;
  text.caption("Share of sinks by threshold", "share_by_epsilon");
  text.names(grid.front().begin().key(), columns);
  for (std::size_t i = 0; i < grid.size(); i += 4) {
    std::vector<std::string> cells;
    for (const Column& column : columns)
      cells.push_back(number_text(column.result.at("share_by_epsilon")[i].at("share")));
    text.row(number_text(grid[i].front()), cells);
  }
}

void add_layers(Text& text, const std::vector<Column>& columns, const char* field, const std::string& what) {
  std::size_t layers = 0;
  for (const Column& column : columns) layers = std::max(layers, column.result.at(field).size());
  text.caption(what, field);
  text.names("layer", columns);
  for (std::size_t l = 0; l < layers; ++l) {
    std::vector<std::string> cells;
    for (const Column& column : columns) {
      const OrderedJson& values = column.result.at(field);
      cells.push_back(l < values.size() ? number_text(values[l]) : "-");
    }
    text.row(std::to_string(l), cells);
  }
}

struct Head {
  std::size_t layer, head;
  double top_sink;
};

void add_heads(Text& text, const Column& column) {
  std::vector<Head> heads;
  const OrderedJson& map = column.result.at("top_sink");
  for (std::size_t l = 0; l < map.size(); ++l)
    for (std::size_t h = 0; h < map[l].size(); ++h)
      if (!map[l][h].is_null()) heads.push_back({l, h, map[l][h].get<double>()});
  if (heads.empty()) return;
  std::stable_sort(heads.begin(), heads.end(),
                   [](const Head& a, const Head& b) { return a.top_sink > b.top_sink; });
  heads.resize(std::min(heads.size(), most_heads));
  text.caption("Heads with the largest sinks, " + column.name, "top_sink");
  text.row("layer", {"head", "top sink"});
  for (const Head& head : heads)
    text.row(std::to_string(head.layer), {std::to_string(head.head), fmt::format("{:.4g}", head.top_sink)});
}

void add_tokens(Text& text, const Column& column) {
  const OrderedJson& tokens = column.result.at("tokens");
  if (tokens.empty()) return;
  text.caption("Tokens most often sinks, " + column.name, "tokens");
  text.row("token", {"id", "frequency", "share", "lift"});
  for (std::size_t i = 0; i < std::min(tokens.size(), most_tokens); ++i) {
    const OrderedJson& token = tokens[i];
    text.row(token.at("text").is_null() ? "" : token.at("text").get<std::string>(),
             {token.at("id").dump(), number_text(token.at("frequency")), number_text(token.at("share")),
              number_text(token.at("lift"))});
  }
}

std::string of_quarter(std::size_t quarter) {
  if (quarter == 0) return "first quarter by removed mass";
  return quarter == 3 ? "last quarter" : fmt::format("quarter {}", quarter + 1);
}

void add_effect(Text& text, const Column& column) {
  const OrderedJson& effect = column.result.at("effect");
  if (effect.is_null()) return;
  text.caption("Effect of the masking on predictions of the same state, " + column.name, "effect");
  text.row(fmt::format("{} steps", effect.at("steps").dump()),
           {"predictions", "KL, nats", "same token", "confidence", "probability", "removed mass"});
  const auto row = [&](const std::string& name, const OrderedJson& part) {
    std::vector<std::string> cells;
    for (const char* field : effect_numbers) cells.push_back(number_text(part.at(field)));
    text.row(name, cells);
  };
  row("all", effect);
  for (std::size_t q = 0; q < effect.at("quarters").size(); ++q) row(of_quarter(q), effect.at("quarters")[q]);
  text.row("removed mass with", {"Spearman", "Kendall", "steps", "predictions"});
  for (const char* pair : {"mass_and_confidence", "mass_and_probability"}) {
    const OrderedJson& of_pair = effect.at(pair);
    text.row(fmt::format("  change of {}", std::string(pair).substr(std::string("mass_and_").size())),
             {number_text(of_pair.at("spearman")), number_text(of_pair.at("kendall")),
              number_text(of_pair.at("steps")), number_text(of_pair.at("predictions"))});
  }
}

}  // namespace

std::string measure_tables(const OrderedJson& measured) {
  const std::vector<Column> columns = columns_of(measured);
  Text text(measured);
  add_legend(text, columns);
  add_summary(text, columns);
  add_thresholds(text, columns);
  add_layers(text, columns, "sinks_per_layer", "Sinks of a head by layer");
  add_layers(text, columns, "absorption", "Absorption by layer");
  for (const Column& column : columns) add_heads(text, column);
  for (const Column& column : columns) add_tokens(text, column);
  for (const Column& column : columns) add_effect(text, column);
  return text.text();
}

}  // namespace sinkscope
