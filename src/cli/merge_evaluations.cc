#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "cli/eval_report.h"
#include "cli/json_lines.h"
#include "cli/merge_shards.h"
#include "eval/result_files.h"
#include "measure/statistics.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

Paths below(const Paths& folders, const std::string& name) {
  Paths paths;
  for (const fs::path& folder : folders) paths.push_back(folder / name);
  return paths;
}

std::vector<OrderedJson> merged_lines(const Paths& cells, const std::string& task) {
  std::vector<OrderedJson> lines;
  for (const fs::path& cell : cells) {
    std::vector<OrderedJson> part = read_lines(samples_path(cell, task));
    lines.insert(lines.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const OrderedJson& a, const OrderedJson& b) {
    return a.at("doc_id").get<std::int64_t>() < b.at("doc_id").get<std::int64_t>();
  });
  return lines;
}

// Choices' likelihoods in the order of the problems, numbered anew.
void merge_likelihoods(const Paths& folders, const std::vector<OrderedJson>& samples, const fs::path& out) {
  std::vector<std::vector<OrderedJson>> parts;
  for (const fs::path& folder : folders)
    parts.push_back(read_objects((folder / "likelihoods.jsonl").string()));
  std::vector<std::size_t> at(parts.size(), 0);
  std::vector<OrderedJson> merged;
  for (const OrderedJson& sample : samples) {
    const auto problem = sample.at("doc_id").get<std::size_t>();
    const std::size_t shard = problem % parts.size();
    const auto choices = sample.find("filtered_resps");
    if (choices == sample.end() || !choices->is_array())
      throw Error("{}: the scored line of problem {} has no list filtered_resps",
                  folders[shard].parent_path().string(), problem);
    for (std::size_t i = 0; i < choices->size(); ++i) {
      if (at[shard] == parts[shard].size())
        throw Error("{} has too few lines", (folders[shard] / "likelihoods.jsonl").string());
      OrderedJson line = std::move(parts[shard][at[shard]++]);
      line["index"] = merged.size();
      merged.push_back(std::move(line));
    }
  }
  for (std::size_t shard = 0; shard < parts.size(); ++shard)
    if (at[shard] != parts[shard].size())
      throw Error("{} has too many lines", (folders[shard] / "likelihoods.jsonl").string());
  make_folders(out);
  write_lines(out / "likelihoods.jsonl", merged);
}

// Every problem is there, with as many lines as every other.
void check_whole(const std::vector<OrderedJson>& lines, std::size_t wanted, const std::string& place) {
  const std::size_t filters = wanted == 0 ? 0 : lines.size() / wanted;
  for (std::size_t i = 0; i < wanted && filters > 0; ++i)
    for (std::size_t k = 0; k < filters; ++k)
      if (lines[i * filters + k].at("doc_id") != i)
        throw Error("{}: the shards hold no problem {}", place, i);
  if (filters == 0 || lines.size() != filters * wanted)
    throw Error("{}: the shards hold {} scored lines of {} problems", place, lines.size(), wanted);
}

// How many problems a task has, as eval.json lists them.
std::size_t wanted_of(const OrderedJson& tasks, const std::string& name) {
  for (const OrderedJson& task : tasks)
    if (task.at("name") == name) return task.at("problems").get<std::size_t>();
  throw Error("eval.json lists no task {}", name);
}

// results.json of the first shard. Throws where it lacks what is changed in it.
OrderedJson header_of(const fs::path& cell) {
  const fs::path file = cell / "results.json";
  OrderedJson header = parse_ordered_json(read_file(file), file.string());
  for (const char* name : {"results", "n-samples", "config"})
    if (!header.is_object() || !header.contains(name) || !header[name].is_object())
      throw Error("{} has no object {}", file.string(), name);
  if (!header["config"].contains("model_args") || !header["config"]["model_args"].is_object())
    throw Error("{} has no object config.model_args", file.string());
  for (const auto& [task, scores] : header["results"].items())
    if (!header["n-samples"].contains(task) || !header["n-samples"][task].is_object())
      throw Error("{} has no object n-samples.{}", file.string(), task);
  return header;
}

CellLines merge_cell(const Paths& folders, const Cell& cell, const OrderedJson& tasks, const fs::path& out) {
  CellLines result{cell, {}};
  const Paths cells = below(folders, cell.name);
  const auto is_there = [](const fs::path& folder) { return fs::exists(folder); };
  if (std::none_of(cells.begin(), cells.end(), is_there)) return result;  // no task has this cell
  for (const fs::path& folder : cells)
    if (!fs::exists(folder / "results.json")) throw Error("{} has no results.json", folder.string());
  OrderedJson header = header_of(cells.front());
  const OrderedJson results = header["results"];
  for (const auto& [task, scores] : results.items()) {
    std::vector<OrderedJson> lines = merged_lines(cells, task);
    const std::size_t wanted = wanted_of(tasks, task);
    const std::string place = cell.name + "/" + task;
    check_whole(lines, wanted, place);
    const Paths runs = below(cells, task);
    if (!fs::exists(runs.front() / "run.json"))
      merge_likelihoods(runs, lines, out / cell.name / task);
    else if (const std::size_t count = merge_runs(runs, out / cell.name / task); count != wanted)
      throw Error("{}: the shards hold {} samples of {} problems", place, count, wanted);
    write_lines(samples_path(out / cell.name, task), lines);
    result.tasks.emplace_back(task, std::move(lines));
  }
  if (result.tasks.empty()) throw Error("{} has no results", (cells.front() / "results.json").string());
  header.erase("results");
  header["config"]["model_args"] = without_shard(header["config"]["model_args"]);
  write_cell_results(out, result, header);
  return result;
}

// What read_summary() leaves open and merging reads.
void check_summary(const OrderedJson& summary, const std::string& where) {
  if (!summary.contains("model") || !summary["model"].is_object())
    throw Error("{} has no object model", where);
  const OrderedJson tasks = summary.value("tasks", OrderedJson());
  if (!tasks.is_array()) throw Error("{} has no list tasks", where);
  for (const OrderedJson& task : tasks) {
    const bool right = task.is_object() && task.contains("name") && task["name"].is_string() &&
                       task.contains("problems") && task["problems"].is_number_unsigned();
    if (!right) throw Error("{}: tasks must hold objects with a name and a number of problems", where);
  }
  const OrderedJson resamples = summary["options"].value("resamples", OrderedJson(1));
  if (!resamples.is_number_integer() || resamples < 1 || resamples > most_resamples)
    throw Error("{}: options.resamples is {}; 1 to {} is right", where, json_line(resamples).substr(0, 40),
                most_resamples);
}

}  // namespace

std::size_t merge_evaluations(const Paths& given, const fs::path& out) {
  std::vector<OrderedJson> summaries, options;
  for (const fs::path& folder : given) {
    summaries.push_back(read_summary(folder / "eval.json"));
    const OrderedJson& summary = summaries.back();
    check_summary(summary, (folder / "eval.json").string());
    if (summary.value("ended", OrderedJson()).is_null())
      throw Error("{} has not ended; `sinkscope eval --resume` goes on with it", folder.string());
    if (summary.at("model") != summaries.front().at("model"))
      throw Error("{} was made with another model than {}", folder.string(), given.front().string());
    options.push_back(summary.at("options"));
  }
  const Paths folders = in_order(given, options);
  for (std::size_t i = 0; i < given.size(); ++i)
    for (const char* name : {"tasks", "cells"})
      if (summaries[i].at(name) != summaries.front().at(name))
        throw Error("{} was made with other {}, or other data, than {}", given[i].string(), name,
                    given.front().string());
  OrderedJson summary = summaries.front();
  summary["options"] = without_shard(summary["options"]);
  std::vector<CellLines> results;
  for (const Cell& cell : read_cells(summary, (given.front() / "eval.json").string()))
    results.push_back(merge_cell(folders, cell, summary.at("tasks"), out));
  end_summary(out, summary, results, summary["options"].value("resamples", std::size_t{10000}));
  return results.size();
}

}  // namespace sinkscope
