#include "draw/recorded.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/text_parts.h"
#include "sinks/ranking.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_label = 100;  // bytes; names of files have at most 255

std::vector<std::size_t> chosen(const NumberRanges& wanted, std::int64_t count, const char* what,
                                const std::string& label) {
  // An end beyond the last one would be silently cut.
  if (wanted.largest() >= count)
    throw UsageError("--{} names {} {}; {} has {}s 0 to {}", what, what, wanted.largest(), label, what,
                     count - 1);
  std::vector<std::size_t> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    if (wanted.contains(i)) numbers.push_back(static_cast<std::size_t>(i));
  return numbers;
}

std::variant<SampleSteps, RowSteps> open_steps(const fs::path& file, const RunShape& shape, bool rows) {
  if (rows) return std::variant<SampleSteps, RowSteps>(std::in_place_type<RowSteps>, file, shape);
  return std::variant<SampleSteps, RowSteps>(std::in_place_type<SampleSteps>, file, shape);
}

// Of maps that are one behind the other: their mean or maximum over each key, on the scale.
void add_columns(SampleView& view, const Step& step, const PlotOptions& options) {
  const std::size_t keys = step.shape.positions;
  const double factor = scale_factor(options.detection.scale, keys);
  std::vector<double> sums(keys, 0);
  for (std::size_t map = 0; map < step.shape.maps(); ++map) {
    const std::span<const float> columns = step.columns_of(map);
    if (options.aggregate == Aggregate::mean)
      for (std::size_t j = 0; j < keys; ++j) sums[j] += columns[j];
    else
      for (std::size_t j = 0; j < keys; ++j) sums[j] = std::max(sums[j], static_cast<double>(columns[j]));
  }
  const double divisor = options.aggregate == Aggregate::mean ? static_cast<double>(step.shape.maps()) : 1.0;
  float* row = view.columns.values.data() + step.number * view.columns.columns;
  for (std::size_t j = 0; j < keys; ++j) row[j] = static_cast<float>(factor * sums[j] / divisor);
}

SampleView begin_view(const PlotRun& run, const SampleShape& shape, std::int64_t sample) {
  const fs::path file = sample_path(run.recorded.folder, sample);
  SampleView view;
  view.shape = shape;
  view.mask_id = run.recorded.info.model.mask_id;
  view.shape.layers = run.choice.layers.size();
  view.shape.heads = run.choice.heads.size();
  view.states = read_states(NpzFile(file), file.string());
  view.columns = {shape.steps, shape.positions,
                  std::vector<float>(shape.steps * shape.positions, std::numeric_limits<float>::quiet_NaN())};
  view.sinks.assign(view.columns.values.size(), 0);
  view.top.assign(view.shape.maps(), 0);
  return view;
}

void add_step(SampleView& view, const Step& step, const PlotOptions& options) {
  add_columns(view, step, options);
  view.largest.insert(view.largest.end(), step.largest.begin(), step.largest.end());
  const double factor = scale_factor(options.detection.scale, step.shape.positions);
  for (const std::vector<int>& sinks : step.sinks)
    for (const int key : sinks) ++view.sinks[step.number * view.columns.columns + key];
  for (std::size_t map = 0; map < step.shape.maps(); ++map)
    if (step.largest[map] >= 0)
      view.top[map] +=
          factor * step.columns_of(map)[step.largest[map]] / static_cast<double>(view.shape.steps);
}

void add_step(ValueHistogram& histogram, const Step& step, SinkScale scale) {
  const double factor = scale_factor(scale, step.shape.positions);
  histogram.width = scale == SinkScale::mean ? 0.0025 : 0.25;
  for (const float value : step.columns) {
    const auto bin = static_cast<std::size_t>(factor * value / histogram.width);
    if (bin >= histogram.counts.size()) histogram.counts.resize(bin + 1, 0);
    ++histogram.counts[bin];
  }
}

// A column sum is at most the number of queries; more would make bins without end.
void check_size(const Step& step, const PlotRun& run, std::int64_t sample) {
  for (const float value : step.columns)
    if (!(value <= 1.1 * static_cast<double>(step.shape.positions) + 1))
      throw Error("{}: a column sum of step {} is {}, more than its {} positions can give",
                  sample_path(run.recorded.folder, sample).string(), step.number, value,
                  step.shape.positions);
}

}  // namespace

Aggregate parse_aggregate(std::string_view name) {
  for (const Aggregate aggregate : {Aggregate::mean, Aggregate::maximum})
    if (name == name_of(aggregate)) return aggregate;
  throw UsageError("--aggregate \"{}\" is none of mean, max", name);
}

std::string_view name_of(Aggregate aggregate) { return aggregate == Aggregate::mean ? "mean" : "max"; }

PlotRun open_plot_run(const fs::path& folder, const PlotOptions& options, const PlotCallbacks& callbacks) {
  PlotRun run;
  run.label = label_of(folder);
  run.recorded = open_recorded_run(folder, "drawn", callbacks.note);
  run.choice = {chosen(options.layers, run.recorded.info.model.layers, "layer", folder.string()),
                chosen(options.heads, run.recorded.info.model.heads, "head", folder.string())};
  for (const SampleRecord& record : run.recorded.samples) run.samples.push_back(record.index);
  run.sample = run.samples.front();
  if (options.sample) {
    if (std::find(run.samples.begin(), run.samples.end(), *options.sample) == run.samples.end())
      throw UsageError("--sample {}: {} has no such sample; it has {} from {} to {}", *options.sample,
                       folder.string(), run.samples.size(), run.samples.front(), run.samples.back());
    run.sample = *options.sample;
    run.samples = {*options.sample};
  }
  run.rows = holds_rows(sample_path(folder, run.sample));
  return run;
}

std::vector<PlotRun> open_plot_runs(const PlotOptions& options, const PlotCallbacks& callbacks) {
  std::vector<PlotRun> runs;
  std::set<std::string> taken;
  for (const fs::path& folder : options.runs) {
    runs.push_back(open_plot_run(folder, options, callbacks));
    runs.back().label = free_label(runs.back().label, taken);
  }
  return runs;
}

std::string label_of(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string free_label(const std::string& wanted, std::set<std::string>& taken) {
  std::string label(utf8_prefix(wanted, longest_label));
  for (char& c : label)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/') c = '_';
  if (label.empty() || label.front() == '.') label.insert(label.begin(), '_');
  std::string free = label;
  for (int n = 2; !taken.insert(free).second; ++n) free = fmt::format("{}-{}", label, n);
  return free;
}

PlotSteps::PlotSteps(const PlotRun& run, std::int64_t sample)
    : steps_(open_steps(sample_path(run.recorded.folder, sample), shape_of(run.recorded.info), run.rows)) {}

const SampleShape& PlotSteps::shape() const {
  return std::visit([](const auto& steps) -> const SampleShape& { return steps.shape(); }, steps_);
}

void PlotSteps::read(std::size_t t, Step& step) const {
  std::visit([&](const auto& steps) { steps.read(t, step); }, steps_);
}

void choose_maps(Step& step, const MapChoice& choice) {
  if (choice.maps() == step.shape.maps()) return;
  const std::size_t keys = step.shape.positions;
  std::vector<float> kept;
  kept.reserve(status_count * choice.maps() * keys);
  for (std::size_t c = 0; c < status_count; ++c)
    for (const std::size_t layer : choice.layers)
      for (const std::size_t head : choice.heads) {
        const std::span<const float> columns =
            step.columns_of(static_cast<TokenStatus>(c), layer * step.shape.heads + head);
        kept.insert(kept.end(), columns.begin(), columns.end());
      }
  step.by_class = std::move(kept);
  step.shape.layers = choice.layers.size();
  step.shape.heads = choice.heads.size();
}

RunNumbers collect_numbers(const PlotRun& run, const PlotOptions& options, const Needs& needs,
                           const std::function<void()>& done) {
  RunNumbers numbers(options.detection);
  const std::vector<std::int64_t> only{run.sample};
  for (const std::int64_t index : needs.pooled() ? run.samples : only) {
    const PlotSteps steps(run, index);
    SampleShape shape = steps.shape();
    const bool viewed = needs.view && index == run.sample;
    if (viewed) numbers.view = begin_view(run, shape, index);
    shape.layers = run.choice.layers.size();
    shape.heads = run.choice.heads.size();
    LifeTracker lives(needs.tracks ? shape : SampleShape{}, numbers.tracks);
    Step step;
    for (std::size_t t = 0; t < shape.steps; ++t) {
      steps.read(t, step);
      choose_maps(step, run.choice);
      find_sinks(step, options.detection);
      check_size(step, run, index);
      if (viewed) add_step(numbers.view, step, options);
      if (needs.share) add_step(numbers.share, step, options.detection);
      if (needs.tracks) lives.add_step(step);
      if (needs.tokens) add_step(numbers.tokens, step);
      if (needs.overlap) add_step(numbers.overlap, step);
      if (needs.histogram) add_step(numbers.histogram, step, options.detection.scale);
    }
    if (needs.tracks) lives.finish();
    done();
  }
  return numbers;
}

}  // namespace sinkscope
