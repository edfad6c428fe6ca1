#include "measure/csv_tables.h"

#include "base/json.h"

#include "measure/effect.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string field(const OrderedJson& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return json_line(value);
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// A result with the words that say what it is of.
struct Entry {
  const OrderedJson& result;
  std::string pooled;
};

std::vector<Entry> entries_of(const OrderedJson& measured) {
  std::vector<Entry> entries;
  for (const OrderedJson& run : measured.at("runs")) entries.push_back({run, ""});
  if (measured.contains("models"))
    for (const OrderedJson& model : measured.at("models")) entries.push_back({model, "model"});
  entries.push_back({measured.at("pooled"), "all"});
  return entries;
}

constexpr const char* head_names = "run,model,pooled,rule,scale,epsilon,z,steepness,top_k,aggregation,";

// One table being written.
class Table {
 public:
  Table(const OrderedJson& measured, std::string file, const std::string& columns)
      : measured_(measured), table_{std::move(file), head_names + columns + "\n"} {}

  // `aggregation` is the field of measure.json that the numbers come from.
  void row(const Entry& entry, const std::string& aggregation, std::vector<OrderedJson> fields) {
    const auto value = [&](const char* name) { return entry.result.value(name, OrderedJson(nullptr)); };
    std::vector<OrderedJson> all{value("run"), value("model"), entry.pooled};
    for (const char* name : {"rule", "scale", "epsilon", "z", "steepness", "top_k"})
      all.push_back(value(name));
    all.push_back(measured_.at("aggregation").value(aggregation, OrderedJson(nullptr)));
    all.insert(all.end(), fields.begin(), fields.end());
    table_.content += csv_line(all);
  }

  CsvTable finish() { return std::move(table_); }

 private:
  const OrderedJson& measured_;
  CsvTable table_;
};

// The field of `aggregation` that covers a single number.
std::string aggregation_of(const std::string& name) {
  if (name.starts_with("tracks.")) return "tracks";
  if (name.starts_with("split_")) return "split_sinks";
  if (name.starts_with("calibration.")) return "calibration";
  if (name.starts_with("where.")) return "tokens";
  return name;
}

CsvTable summary_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "summary.csv", "measurement,value");
  for (const Entry& entry : entries)
    for (const auto& [name, value] : summary_of(entry.result))
      table.row(entry, aggregation_of(name), {name, value});
  return table.finish();
}

// The rows of a list of objects, a column for each of `names`.
void list_rows(Table& table, const Entry& entry, const std::string& aggregation, const OrderedJson& list,
               const std::vector<const char*>& names, const std::vector<OrderedJson>& first = {}) {
  for (const OrderedJson& item : list) {
    std::vector<OrderedJson> fields = first;
    for (const char* name : names) fields.push_back(item.value(name, OrderedJson(nullptr)));
    table.row(entry, aggregation, fields);
  }
}

CsvTable threshold_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "share_by_epsilon.csv", "threshold,share");
  for (const Entry& entry : entries)
    for (const OrderedJson& point : entry.result.at("share_by_epsilon"))
      table.row(entry, "share_by_epsilon", {point.front(), point.at("share")});
  return table.finish();
}

CsvTable layer_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "layers.csv", "measurement,layer,value");
  for (const Entry& entry : entries) {
    const OrderedJson& result = entry.result;
    for (const char* name : {"sinks_per_layer", "absorption"})
      for (std::size_t l = 0; l < result.at(name).size(); ++l)
        table.row(entry, name, {name, l, result.at(name)[l]});
    if (result.at("overlap").is_null()) continue;
    const OrderedJson& heads = result.at("overlap").at("heads");
    for (std::size_t l = 0; l < heads.size(); ++l)
      table.row(entry, "overlap", {"overlap_of_heads", l, heads[l]});
  }
  return table.finish();
}

CsvTable head_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "heads.csv", "measurement,layer,head,value");
  for (const Entry& entry : entries)
    for (const char* name : {"top_sink", "largest_column"})
      for (std::size_t l = 0; l < entry.result.at(name).size(); ++l)
        for (std::size_t h = 0; h < entry.result.at(name)[l].size(); ++h)
          table.row(entry, name, {name, l, h, entry.result.at(name)[l][h]});
  return table.finish();
}

CsvTable overlap_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "overlap.csv", "layer,other_layer,jaccard");
  for (const Entry& entry : entries) {
    if (entry.result.at("overlap").is_null()) continue;
    const OrderedJson& layers = entry.result.at("overlap").at("layers");
    for (std::size_t a = 0; a < layers.size(); ++a)
      for (std::size_t b = 0; b < layers.size(); ++b) table.row(entry, "overlap", {a, b, layers[a][b]});
  }
  return table.finish();
}

CsvTable effect_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "effect.csv", "measurement,of,quarter,value");
  for (const Entry& entry : entries) {
    const OrderedJson& effect = entry.result.at("effect");
    if (effect.is_null()) continue;
    table.row(entry, "effect", {"steps", "all", nullptr, effect.at("steps")});
    for (const char* name : effect_numbers)
      table.row(entry, "effect", {name, "all", nullptr, effect.at(name)});
    for (std::size_t q = 0; q < effect.at("quarters").size(); ++q)
      for (const char* name : effect_numbers)
        table.row(entry, "effect", {name, "removed_mass", q + 1, effect.at("quarters")[q].at(name)});
    for (const char* pair : {"mass_and_confidence", "mass_and_probability"})
      for (const auto& [name, value] : effect.at(pair).items())
        table.row(entry, "effect", {name, pair, nullptr, value});
  }
  return table.finish();
}

CsvTable list_table(const OrderedJson& measured, const std::vector<Entry>& entries, const char* file,
                    const char* columns, const std::vector<const char*>& names, const char* aggregation,
                    const OrderedJson::json_pointer& where) {
  Table table(measured, file, columns);
  for (const Entry& entry : entries)
    if (entry.result.contains(where)) list_rows(table, entry, aggregation, entry.result.at(where), names);
  return table.finish();
}

CsvTable position_table(const OrderedJson& measured, const std::vector<Entry>& entries) {
  Table table(measured, "positions.csv", "kind,value,frequency,share,lift");
  const std::vector<const char*> lift{"frequency", "share", "lift"};
  for (const Entry& entry : entries) {
    const OrderedJson& result = entry.result;
    for (const auto& [status, counts] : result.at("status").items())
      list_rows(table, entry, "tokens", OrderedJson::array({counts}), lift, {"status", status});
    const OrderedJson& where = result.at("where");
    for (const OrderedJson& place : where.at("relative_positions"))
      list_rows(table, entry, "tokens", OrderedJson::array({place}), lift,
                {"relative_position_from", place.at("from")});
    for (const OrderedJson& place : where.at("mask_distances"))
      list_rows(table, entry, "tokens", OrderedJson::array({place}), lift,
                {"mask_distance", place.at("distance")});
    list_rows(table, entry, "tokens", OrderedJson::array({where.at("without_masks")}), lift,
              {"without_masks", nullptr});
  }
  return table.finish();
}

}  // namespace

std::string csv_line(const std::vector<OrderedJson>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i == 0 ? "" : ",") + field(fields[i]);
  return line + "\n";
}

std::vector<std::pair<std::string, OrderedJson>> summary_of(const OrderedJson& result) {
  std::vector<std::pair<std::string, OrderedJson>> numbers;
  const auto add = [&](const std::string& name, const char* pointer) {
    const OrderedJson::json_pointer where(pointer);
    if (result.contains(where)) numbers.emplace_back(name, result.at(where));
  };
  for (const char* name : {"samples", "steps", "share_of_sinks", "mean_membership"})
    add(name, (std::string("/") + name).c_str());
  for (const char* name : {"epsilon", "z", "share"})
    add(std::string("calibration.") + name, (std::string("/calibration/") + name).c_str());
  for (const char* name :
       {"lives", "lives_touching_an_end", "births", "deaths", "mean_lifetime", "jump_count", "mean_jump",
        "static_share", "jaccard", "drift", "drift_standard_error", "spatial_variance", "temporal_variance"})
    add(std::string("tracks.") + name, (std::string("/tracks/") + name).c_str());
  for (const char* name : {"split_maps", "split_count", "split_share"})
    add(name, (std::string("/") + name).c_str());
  for (const char* name : {"mean_relative_position", "mean_mask_distance"})
    add(std::string("where.") + name, (std::string("/where/") + name).c_str());
  return numbers;
}

std::vector<CsvTable> csv_tables(const OrderedJson& measured) {
  using Pointer = OrderedJson::json_pointer;
  const std::vector<Entry> entries = entries_of(measured);
  return {summary_table(measured, entries),
          threshold_table(measured, entries),
          layer_table(measured, entries),
          head_table(measured, entries),
          overlap_table(measured, entries),
          position_table(measured, entries),
          effect_table(measured, entries),
          list_table(measured, entries, "lifetimes.csv", "steps,lives,touching_an_end",
                     {"steps", "lives", "touching_an_end"}, "tracks", Pointer("/tracks/lifetimes")),
          list_table(measured, entries, "jumps.csv", "distance,jumps", {"distance", "jumps"}, "tracks",
                     Pointer("/tracks/jumps")),
          list_table(measured, entries, "split_sinks.csv", "in_run,sample,step,layer,head,masked,unmasked",
                     {"run", "sample", "step", "layer", "head", "masked", "unmasked"}, "split_sinks",
                     Pointer("/split_sinks")),
          list_table(measured, entries, "tokens.csv", "id,text,frequency,share,lift",
                     {"id", "text", "frequency", "share", "lift"}, "tokens", Pointer("/tokens"))};
}

}  // namespace sinkscope
