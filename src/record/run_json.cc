#include "record/run_json.h"

#include <sinkscope/error.h>

#include <type_traits>

#include "base/json.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int known_format = 1;

template <typename Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// Whether `json` can become a Value without loss: the library itself would turn 1.5 into 1 and true into 1.
template <typename Value>
bool fits(const Json& json) {
  if constexpr (std::is_same_v<Value, bool>) {
    return json.is_boolean();
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return json.is_string();
  } else if constexpr (std::is_floating_point_v<Value>) {
    return json.is_number();
  } else {
    if (!json.is_number_integer()) return false;
    return json.is_number_unsigned() ? std::in_range<Value>(json.get<std::uint64_t>())
                                     : std::in_range<Value>(json.get<std::int64_t>());
  }
}

// Reads the fields of one object; `path` is "FILE: model." or so.
class Fields {
 public:
  Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (object_.is_object()) return;
    const std::size_t end = path_.find_last_not_of(": .");
    throw Error("{} is {}, not an object", path_.substr(0, end + 1), json_type_name(object_));
  }

  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }

  template <typename Value>
  void require(const char* key, Value& value) const {
    if (!has(key)) throw Error("{}{} is missing", path_, key);
    read(key, value);
  }

  /// Leaves `value` alone where the field is missing or null.
  template <typename Value>
  void read(const char* key, Value& value) const {
    if (has(key)) value = converted<Value>(object_.at(key), key);
  }

  template <typename Value>
  void read(const char* key, std::optional<Value>& value) const {
    if (has(key)) value = converted<Value>(object_.at(key), key);
  }

  template <typename Value>
  void read(const char* key, std::vector<Value>& values) const {
    if (!has(key)) return;
    if (!object_.at(key).is_array()) throw Error("{}{} is no list", path_, key);
    for (const Json& item : object_.at(key)) values.push_back(converted<Value>(item, key));
  }

  /// The object at `key`; an empty one where there is none.
  Fields inner(const char* key) const {
    static const Json empty = Json::object();
    return {has(key) ? object_.at(key) : empty, path_ + key + "."};
  }

 private:
  template <typename Value>
  Value converted(const Json& json, const char* key) const {
    if (!fits<Value>(json)) {
      std::string text = json_line(json);
      if (text.size() > 60) text = text.substr(0, 60) + "...";
      throw Error("{}{} cannot be {}", path_, key, text);
    }
    return json.get<Value>();
  }

  const Json& object_;
  std::string path_;
};

OrderedJson model_json(const RunModel& model) {
  return {{"name", model.name},
          {"family", model.family},
          {"layers", model.layers},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"mask_id", or_null(model.mask_id)},
          {"config_sha256", model.config_sha256},
          {"weights_sha256", model.weights_sha256}};
}

OrderedJson sink_json(const RunSink& sink) {
  return {{"rule", sink.rule},
          {"scale", sink.scale},
          {"epsilon", sink.epsilon},
          {"top_k", sink.top_k},
          {"from", sink.from},
          {"exclude_self", sink.exclude_self},
          {"mask_sink_ratio", sink.mask_sink_ratio},
          {"control", sink.control},
          {"action", sink.action}};
}

OrderedJson machine_json(const RunMachine& machine) {
  return {{"cpu", machine.cpu},         {"instruction_sets", machine.instruction_sets},
          {"threads", machine.threads}, {"memory_bytes", machine.memory_bytes},
          {"os", machine.os},           {"device", machine.device}};
}

RunModel parse_model(const Fields& fields) {
  RunModel model;
  fields.read("name", model.name);
  fields.read("family", model.family);
  fields.require("layers", model.layers);
  fields.require("heads", model.heads);
  model.kv_heads = model.heads;
  fields.read("kv_heads", model.kv_heads);
  fields.read("mask_id", model.mask_id);
  fields.read("config_sha256", model.config_sha256);
  fields.read("weights_sha256", model.weights_sha256);
  return model;
}

RunSink parse_sink(const Fields& fields) {
  RunSink sink;
  fields.read("rule", sink.rule);
  fields.read("scale", sink.scale);
  fields.read("epsilon", sink.epsilon);
  fields.read("top_k", sink.top_k);
  fields.read("from", sink.from);
  fields.read("exclude_self", sink.exclude_self);
  fields.read("mask_sink_ratio", sink.mask_sink_ratio);
  fields.read("control", sink.control);
  fields.read("action", sink.action);
  return sink;
}

RunMachine parse_machine(const Fields& fields) {
  RunMachine machine;
  fields.read("cpu", machine.cpu);
  fields.read("instruction_sets", machine.instruction_sets);
  fields.read("threads", machine.threads);
  fields.read("memory_bytes", machine.memory_bytes);
  fields.read("os", machine.os);
  fields.read("device", machine.device);
  return machine;
}

}  // namespace

std::string run_json(const RunInfo& info) {
  const OrderedJson json = {{"format", info.format},
                            {"version", info.version},
                            {"command", info.command},
                            {"options", info.options},
                            {"model", model_json(info.model)},
                            {"sink", sink_json(info.sink)},
                            {"machine", machine_json(info.machine)},
                            {"started", info.started},
                            {"ended", or_null(info.ended)}};
  return json_text(json, 2);
}

RunInfo parse_run_json(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  const Fields fields(json, where + ": ");
  RunInfo info;
  fields.require("format", info.format);
  if (info.format != known_format)
    throw Error("{} has format {}; this version reads format {}", where, info.format, known_format);
  fields.read("version", info.version);
  fields.read("command", info.command);
  // Once more in the order of the file, now that it is known to be sound.
  if (fields.has("options")) info.options = OrderedJson::parse(text.begin(), text.end()).at("options");
  if (!json.contains("model")) throw Error("{}: model is missing", where);
  if (json.at("model").is_object() && !json.at("model").contains("mask_id"))
    throw Error("{}: model.mask_id is missing (null for a model without masks)", where);
  info.model = parse_model(fields.inner("model"));
  info.sink = parse_sink(fields.inner("sink"));
  info.machine = parse_machine(fields.inner("machine"));
  fields.read("started", info.started);
  fields.read("ended", info.ended);
  return info;
}

std::string sample_line(const SampleRecord& record) {
  OrderedJson json = {{"index", record.index},   {"id", record.id},
                      {"prompt", record.prompt}, {"prompt_ids", record.prompt_ids},
                      {"text", record.text},     {"output_ids", record.output_ids}};
  if (record.reference) json["reference"] = *record.reference;
  json["steps"] = record.steps;
  json["forward_passes"] = record.forward_passes;
  json["masks_left"] = record.masks_left;
  json["confidence_ties"] = record.confidence_ties;
  json["empty_rows"] = record.empty_rows;
  if (record.control_missing > 0) json["control_missing"] = record.control_missing;
  json["seconds"] = record.seconds;
  return json_line(json) + "\n";
}

SampleRecord parse_sample_line(std::string_view line, const std::string& where) {
  const Json json = parse_json(line, where);
  const Fields fields(json, where + ": ");
  SampleRecord record;
  fields.require("index", record.index);
  if (record.index < 0) throw Error("{}: index is {}, below 0", where, record.index);
  fields.read("id", record.id);
  fields.read("prompt", record.prompt);
  fields.read("prompt_ids", record.prompt_ids);
  fields.read("text", record.text);
  fields.read("output_ids", record.output_ids);
  fields.read("reference", record.reference);
  fields.read("steps", record.steps);
  fields.read("forward_passes", record.forward_passes);
  fields.read("masks_left", record.masks_left);
  fields.read("confidence_ties", record.confidence_ties);
  fields.read("empty_rows", record.empty_rows);
  fields.read("control_missing", record.control_missing);
  fields.read("seconds", record.seconds);
  return record;
}

}  // namespace sinkscope
