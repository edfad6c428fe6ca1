#include "measure/recorded_run.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>

namespace sinkscope {
namespace {

// The largest model of today has 126 layers of 128 heads; pairs of layers and of heads are compared.
constexpr std::int64_t most_layers_or_heads = 4096;

void check_model(const RecordedRun& run) {
  for (const auto& [name, count] :
       {std::pair("layers", run.info.model.layers), {"heads", run.info.model.heads}})
    if (count < 1 || count > most_layers_or_heads)
      throw Error("{}: model.{} is {}; 1 to {} is right", (run.folder / "run.json").string(), name, count,
                  most_layers_or_heads);
}

}  // namespace

RecordedRun open_recorded_run(const std::filesystem::path& folder, std::string_view done,
                              const std::function<void(const std::string&)>& note) {
  RecordedRun run{folder, read_run_info(folder), {}};
  check_model(run);
  run.samples = read_samples(folder);
  if (run.samples.empty()) throw Error("{} has no finished sample: samples.jsonl is empty", folder.string());
  std::ranges::sort(run.samples, {}, &SampleRecord::index);
  if (!run.info.ended && !run.info.started.empty() && note)
    note(fmt::format("{} was interrupted or is still running; its {} finished samples are {}",
                     folder.string(), run.samples.size(), done));
  return run;
}

nlohmann::ordered_json intervention_json(const RunInfo& info) {
  const RunSink& sink = info.sink;
  if (sink.top_k == 0) return nullptr;
  nlohmann::ordered_json rank = nullptr;
  if (info.options.is_object() && info.options.contains("sink_rank") &&
      info.options.at("sink_rank").is_string())
    rank = info.options.at("sink_rank");
  return {{"top_k", sink.top_k}, {"rule", sink.rule},       {"scale", sink.scale},  {"epsilon", sink.epsilon},
          {"rank", rank},        {"control", sink.control}, {"action", sink.action}};
}

RecordedStates read_states(const NpzFile& file, const std::string& where) {
  const std::vector<std::int64_t> shape = file.array("states").shape;
  if (shape.size() != 2 || shape[0] < 2 || shape[1] < 1)
    throw Error("{}: states has the shape {}; [T+1,S] with T and S of at least 1 is right", where,
                shape_text(shape));
  const std::int32_t length = file.int32_scalar("prompt_length");
  if (length < 0 || length > shape[1])
    throw Error("{}: prompt_length is {}; it must lie between 0 and the {} positions", where, length,
                shape[1]);
  return {static_cast<std::size_t>(shape[0] - 1), static_cast<std::size_t>(shape[1]),
          static_cast<std::size_t>(length), file.int32s("states")};
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace sinkscope
