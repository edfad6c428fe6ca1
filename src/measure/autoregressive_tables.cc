// ar_measure.json as CSV.
#include "measure/autoregressive.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

// One table being written; every row begins with what its number is of.
class Table {
 public:
  Table(const OrderedJson& measured, std::string file, const std::string& columns)
      : measured_(measured),
        table_{std::move(file),
               "model,sequences,samples,length,epsilon,sink_position,aggregation," + columns + "\n"} {}

  void row(const std::string& field, const std::vector<OrderedJson>& fields) {
    std::vector<OrderedJson> all{measured_.at("model").at("name")};
    for (const char* name : {"sequences", "samples", "length", "epsilon", "position"})
      all.push_back(measured_.at(name));
    all.push_back(measured_.at("aggregation").at(field));
    all.insert(all.end(), fields.begin(), fields.end());
    table_.content += csv_line(all);
  }

  CsvTable finish() { return std::move(table_); }

 private:
  const OrderedJson& measured_;
  CsvTable table_;
};

CsvTable positions_table(const OrderedJson& measured) {
  Table table(measured, "positions.csv", "position,sink_rate,standard_error,alpha");
  for (const OrderedJson& sink : measured.at("sinks"))
    table.row("sinks",
              {sink.at("position"), sink.at("sink_rate"), sink.at("standard_error"), sink.at("alpha")});
  if (const OrderedJson& slot = measured.at("slot"); !slot.is_null())
    table.row("slot", {"slot", slot.at("sink_rate"), nullptr, slot.at("alpha")});
  return table.finish();
}

CsvTable heads_table(const OrderedJson& measured) {
  Table table(measured, "heads.csv", "measurement,layer,head,value");
  const auto add = [&](const std::string& field, const std::string& name, const OrderedJson& map) {
    for (std::size_t l = 0; l < map.size(); ++l)
      for (std::size_t h = 0; h < map[l].size(); ++h) table.row(field, {name, l, h, map[l][h]});
  };
  for (const char* name : {"alpha", "sink_rate"}) add(name, name, measured.at(name));
  if (!measured.at("query_key").is_null())
    for (const auto& [name, map] : measured.at("query_key").items()) add("query_key", name, map);
  return table.finish();
}

CsvTable norms_table(const OrderedJson& measured) {
  Table table(measured, "norms.csv", "measurement,layer,position,value");
  for (const char* name : {"hidden_norm", "key_norm", "value_norm"})
    for (std::size_t l = 0; l < measured.at(name).size(); ++l)
      for (std::size_t t = 0; t < measured.at(name)[l].size(); ++t)
        table.row(name, {name, l, t, measured.at(name)[l][t]});
  return table.finish();
}

CsvTable layers_table(const OrderedJson& measured) {
  Table table(measured, "layers.csv", "measurement,layer,value");
  for (const char* name : {"massive_ratio", "key_ratio", "value_ratio"})
    for (std::size_t l = 0; l < measured.at(name).size(); ++l)
      table.row(name, {name, l, measured.at(name)[l]});
  return table.finish();
}

}  // namespace

std::vector<CsvTable> autoregressive_tables(const OrderedJson& measured) {
  return {positions_table(measured), heads_table(measured), norms_table(measured), layers_table(measured)};
}

}  // namespace sinkscope
