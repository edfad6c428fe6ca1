#include "measure/measure_runs.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "measure/recorded_run.h"
#include "measure/result.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

struct Run {
  fs::path folder;
  RunInfo info;
  std::vector<std::int64_t> samples;
};

struct Pool {
  const RunInfo* model;  // of its first run
  std::vector<std::string> folders;
  Sums sums;
};

Run open_run(const fs::path& folder, const MeasureCallbacks& callbacks) {
  RecordedRun recorded = open_recorded_run(folder, "measured", callbacks.note);
  Run run{folder, std::move(recorded.info), {}};
  for (const SampleRecord& record : recorded.samples) run.samples.push_back(record.index);
  return run;
}

std::vector<Run> open_runs(const std::vector<fs::path>& folders, const MeasureCallbacks& callbacks) {
  std::vector<Run> runs;
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    runs.push_back(open_run(folder, callbacks));
    if (!seen.insert(fs::canonical(folder)).second)
      throw UsageError("{} is given twice; pooled, its samples would count twice", folder.string());
  }
  return runs;
}

auto identity(const RunModel& model) {
  return std::tie(model.name, model.layers, model.heads, model.mask_id, model.config_sha256,
                  model.weights_sha256);
}

bool same_model(const RunInfo& a, const RunInfo& b) { return identity(a.model) == identity(b.model); }

void pool(std::vector<Pool>& pools, const Run& run, const Sums& sums, const DetectionOptions& detection) {
  auto found = std::find_if(pools.begin(), pools.end(),
                            [&](const Pool& known) { return same_model(*known.model, run.info); });
  if (found == pools.end()) found = pools.insert(found, Pool{&run.info, {}, Sums(detection)});
  add(found->sums, sums, true);
  found->folders.push_back(run.folder.string());
}

OrderedJson run_head(const Run& run) {
  return {{"run", run.folder.string()},
          {"model", run.info.model.name},
          {"intervention", intervention_json(run.info)}};
}

OrderedJson names_of(const std::vector<Run>& runs) {
  auto names = OrderedJson::array();
  for (const Run& run : runs) names.push_back(run.folder.string());
  return names;
}

}  // namespace

OrderedJson measure_runs(const std::vector<fs::path>& folders, const MeasureOptions& options,
                         const MeasureCallbacks& callbacks) {
  validate_measure(options);
  const std::vector<Run> runs = open_runs(folders, callbacks);
  std::size_t all = 0, done = 0;
  for (const Run& run : runs) all += run.samples.size();
  const auto texts_of = [&](const RunInfo& info) {
    return [&](std::int32_t id) {
      return callbacks.token_text ? callbacks.token_text(info, id) : std::optional<std::string>();
    };
  };
  auto results = OrderedJson::array();
  std::vector<Pool> pools;
  pools.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Sums sums(options.detection);
    for (const std::int64_t index : runs[i].samples) {
      const SampleSteps sample(sample_path(runs[i].folder, index), shape_of(runs[i].info));
      SplitSink place;
      place.run = i;
      place.sample = index;
      add_sample(sums, sample, options, place);
      if (callbacks.progress) callbacks.progress(++done, all);
    }
    OrderedJson result = run_head(runs[i]);
    result.update(result_of(sums, false, options, texts_of(runs[i].info)));
    results.push_back(std::move(result));
    pool(pools, runs[i], sums, options.detection);
  }
  OrderedJson measured{{"format", 1}, {"version", SINKSCOPE_VERSION}, {"command", "measure"}};
  measured.update(rule_of(options.detection));
  measured["aggregation"] = aggregation_texts();
  measured["runs"] = std::move(results);
  auto models = OrderedJson::array();
  Sums together(options.detection);
  for (const Pool& one : pools) {
    OrderedJson result{{"model", one.model->model.name}, {"pooled_runs", one.folders}};
    result.update(result_of(one.sums, true, options, texts_of(*one.model)));
    models.push_back(std::move(result));
    add(together, one.sums, false);
  }
  OrderedJson pooled{{"pooled_runs", names_of(runs)}};
  pooled.update(result_of(together, true, options, texts_of(runs.front().info)));
  if (pools.size() > 1) measured["models"] = std::move(models);
  measured["pooled"] = std::move(pooled);
  return measured;
}

}  // namespace sinkscope
