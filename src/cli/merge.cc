// `sinkscope merge`: the shards of a run or of an evaluation as one.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/eval_report.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/shard.h"
#include "eval/result_files.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Paths = std::vector<std::filesystem::path>;

struct MergeOptions {
  std::vector<std::string> runs;
  std::string run_dir;
  bool quiet = false;
};

// Of `options`, which shard they are of.
Shard shard_in(const OrderedJson& options, const std::filesystem::path& folder) {
  const OrderedJson shard = options.value("shard", OrderedJson());
  if (!shard.is_string() || shard.get<std::string>().empty())
    throw Error("{} is no shard: it was not made with --shard", folder.string());
  return parse_shard(shard.get<std::string>());
}

OrderedJson without_shard(OrderedJson options) {
  options["shard"] = "";
  return options;
}

// The folders in the order of their shards, each there once. `options` are theirs.
Paths in_order(const Paths& folders, const std::vector<OrderedJson>& options) {
  const std::int64_t count = shard_in(options.front(), folders.front()).count;
  Paths ordered(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const Shard shard = shard_in(options[i], folders[i]);
    if (shard.count != count)
      throw Error("{} is one of {} shards, {} one of {}", folders.front().string(), count,
                  folders[i].string(), shard.count);
    if (without_shard(options[i]) != without_shard(options.front()))
      throw Error("{} was made with other options than {}", folders[i].string(), folders.front().string());
    std::filesystem::path& place = ordered[static_cast<std::size_t>(shard.index)];
    if (!place.empty()) throw Error("{} and {} are the same shard", place.string(), folders[i].string());
    place = folders[i];
  }
  for (std::int64_t index = 0; index < count; ++index)
    if (ordered[static_cast<std::size_t>(index)].empty())
      throw Error("shard {} of {} is missing", index, count);
  return ordered;
}

// The same file under another name where the file system can, else a copy.
void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code failed;
  std::filesystem::create_hard_link(from, to, failed);
  if (failed) std::filesystem::copy_file(from, to);
}

void check_same_run(const RunInfo& info, const RunInfo& first, const std::filesystem::path& folder) {
  if (!info.ended)
    throw Error("{} has not ended; `sinkscope {} --resume` goes on with it", folder.string(), first.command);
  const bool same = info.command == first.command && info.model.config_sha256 == first.model.config_sha256 &&
                    info.model.weights_sha256 == first.model.weights_sha256;
  if (!same) throw Error("{} was made with another model or command than the first shard", folder.string());
}

std::size_t merge_runs(const Paths& given, const std::filesystem::path& out) {
  std::vector<RunInfo> infos;
  std::vector<OrderedJson> options;
  for (const std::filesystem::path& folder : given) {
    infos.push_back(read_run_info(folder));
    check_same_run(infos.back(), infos.front(), folder);
    options.push_back(infos.back().options);
  }
  const Paths folders = in_order(given, options);
  std::vector<std::pair<SampleRecord, std::filesystem::path>> samples;
  for (const std::filesystem::path& folder : folders)
    for (SampleRecord& record : read_samples(folder)) samples.emplace_back(std::move(record), folder);
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.first.index < b.first.index; });
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i].first.index != static_cast<std::int64_t>(i))
      throw Error("the shards of {} hold no sample {}", out.string(), i);
  RunInfo info = infos.front();
  info.options = without_shard(info.options);
  RunDirectory run = RunDirectory::create(out, info);
  for (const auto& [record, folder] : samples) {
    link_or_copy(sample_path(folder, record.index), sample_path(out, record.index));
    run.add_sample(record);
  }
  run.end();
  return samples.size();
}

Paths below(const Paths& folders, const std::string& name) {
  Paths paths;
  for (const std::filesystem::path& folder : folders) paths.push_back(folder / name);
  return paths;
}

std::vector<OrderedJson> merged_lines(const Paths& cells, const std::string& task) {
  std::vector<OrderedJson> lines;
  for (const std::filesystem::path& cell : cells) {
    std::vector<OrderedJson> part = read_lines(samples_path(cell, task));
    lines.insert(lines.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const OrderedJson& a, const OrderedJson& b) {
    return a.at("doc_id").get<std::int64_t>() < b.at("doc_id").get<std::int64_t>();
  });
  return lines;
}

// Choices' likelihoods in the order of the problems, numbered anew.
void merge_likelihoods(const Paths& folders, const std::vector<OrderedJson>& samples,
                       const std::filesystem::path& out) {
  std::vector<std::string> contents;
  for (const std::filesystem::path& folder : folders)
    contents.push_back(read_file(folder / "likelihoods.jsonl"));
  std::vector<std::size_t> at(contents.size(), 0);
  std::string merged;
  std::size_t index = 0;
  for (const OrderedJson& sample : samples) {
    const std::size_t shard = sample.at("doc_id").get<std::size_t>() % contents.size();
    for (std::size_t i = 0; i < sample.at("filtered_resps").size(); ++i) {
      const std::size_t end = std::min(contents[shard].find('\n', at[shard]), contents[shard].size());
      OrderedJson line =
          OrderedJson::parse(contents[shard].substr(at[shard], end - at[shard]), nullptr, false);
      if (!line.is_object()) throw Error("{}: likelihoods.jsonl ends too early", folders[shard].string());
      line["index"] = index++;
      merged += line.dump() + "\n";
      at[shard] = end + 1;
    }
  }
  make_folders(out);
  write_file_atomically(out / "likelihoods.jsonl", merged);
}

// How many problems a task has, as eval.json lists them.
std::size_t wanted_of(const OrderedJson& tasks, const std::string& name) {
  for (const OrderedJson& task : tasks)
    if (task.value("name", "") == name) return task.value("problems", std::size_t{0});
  throw Error("eval.json lists no task {}", name);
}

// Every problem is there, with as many lines as every other.
void check_whole(const std::vector<OrderedJson>& lines, std::size_t wanted,
                 const std::filesystem::path& place) {
  const std::size_t filters = wanted == 0 ? 0 : lines.size() / wanted;
  for (std::size_t i = 0; i < wanted; ++i)
    for (std::size_t k = 0; k < filters; ++k)
      if (lines[i * filters + k].at("doc_id") != i)
        throw Error("{}: the shards hold no problem {}", place.string(), i);
  if (filters == 0 || lines.size() != filters * wanted)
    throw Error("{}: the shards hold {} scored lines of {} problems", place.string(), lines.size(), wanted);
}

CellLines merge_cell(const Paths& folders, const Cell& cell, const OrderedJson& tasks,
                     const std::filesystem::path& out) {
  CellLines result{cell, {}};
  const Paths cells = below(folders, cell.name);
  if (!std::filesystem::exists(cells.front() / "results.json")) return result;  // no task has this cell
  const std::string text = read_file(cells.front() / "results.json");
  (void)parse_json(text, (cells.front() / "results.json").string());
  OrderedJson header = OrderedJson::parse(text);
  if (!header.contains("results") || !header["results"].is_object())
    throw Error("{} has no results", (cells.front() / "results.json").string());
  const OrderedJson results = header["results"];
  for (const auto& [task, scores] : results.items()) {
    std::vector<OrderedJson> lines = merged_lines(cells, task);
    check_whole(lines, wanted_of(tasks, task), out / cell.name / task);
    const Paths runs = below(cells, task);
    if (std::filesystem::exists(runs.front() / "run.json"))
      merge_runs(runs, out / cell.name / task);
    else
      merge_likelihoods(runs, lines, out / cell.name / task);
    write_lines(samples_path(out / cell.name, task), lines);
    result.tasks.emplace_back(task, std::move(lines));
  }
  header.erase("results");
  header["config"]["model_args"] = without_shard(header["config"]["model_args"]);
  write_file_atomically(out / cell.name / "results.json", results_json(result, header).dump(2) + "\n");
  return result;
}

std::size_t merge_evaluations(const Paths& given, const std::filesystem::path& out) {
  std::vector<OrderedJson> summaries, options;
  for (const std::filesystem::path& folder : given) {
    summaries.push_back(read_summary(folder / "eval.json"));
    const OrderedJson& summary = summaries.back();
    if (summary.value("ended", OrderedJson()).is_null())
      throw Error("{} has not ended; `sinkscope eval --resume` goes on with it", folder.string());
    if (summary.at("model") != summaries.front().at("model"))
      throw Error("{} was made with another model than {}", folder.string(), given.front().string());
    options.push_back(summary.at("options"));
  }
  const Paths folders = in_order(given, options);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (summaries[i].value("tasks", OrderedJson()) != summaries.front().value("tasks", OrderedJson()))
      throw Error("{} was made with other tasks or data than {}", given[i].string(), given.front().string());
  OrderedJson summary = summaries.front();
  summary["options"] = without_shard(summary["options"]);
  std::vector<CellLines> results;
  for (const Cell& cell : read_cells(summary, (given.front() / "eval.json").string()))
    results.push_back(merge_cell(folders, cell, summary.value("tasks", OrderedJson::array()), out));
  end_summary(out, summary, results, summary["options"].value("resamples", std::size_t{10000}));
  return results.size();
}

void merge_command(const MergeOptions& options) {
  const std::filesystem::path out = options.run_dir;
  if (std::filesystem::exists(out) && !(std::filesystem::is_directory(out) && std::filesystem::is_empty(out)))
    throw UsageError("{} is there already; --run-dir must name a folder that is not, or is empty",
                     out.string());
  const Paths folders(options.runs.begin(), options.runs.end());
  const bool is_evaluation = std::filesystem::exists(folders.front() / "eval.json");
  try {
    const std::size_t count = is_evaluation ? merge_evaluations(folders, out) : merge_runs(folders, out);
    note(options.quiet, fmt::format("{} {} of {} shards are in {}", count,
                                    is_evaluation ? "cells" : "samples", folders.size(), out.string()));
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(out, ignored);  // nothing half-merged
    throw;
  }
}

}  // namespace

void add_merge_command(CLI::App& program) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = program.add_subcommand("merge", "Join the shards of a run or of an evaluation");
  OptionTable table(*command);
  command->add_option("RUN", options->runs, "folders that --shard made, all of one run or evaluation")
      ->required();
  table.option("run-dir", options->run_dir, "where the whole shall lie")->required();
  table.flag("quiet", options->quiet, "no notes on stderr");
  command->footer("The whole is what one process would have left, but for times. The shards stay.");
  command->callback([options] { merge_command(*options); });
}

}  // namespace sinkscope
