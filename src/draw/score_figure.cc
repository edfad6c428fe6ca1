#include "draw/score_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "base/text_parts.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* preferred = "exact_match,flexible-extract";
constexpr std::size_t most_name_columns = 60;

std::string error_name(const std::string& metric) {
  const std::size_t comma = std::min(metric.find(','), metric.size());
  return metric.substr(0, comma) + "_stderr" + metric.substr(comma);
}

bool is_error(const std::string& metric) { return metric.find("_stderr") != std::string::npos; }

// A number that can be drawn.
bool is_score(const OrderedJson& value) {
  return value.is_number() && std::abs(value.get<double>()) <= largest_drawn;
}

TaskScore score_of(const OrderedJson& task, const std::string& metric) {
  TaskScore score{metric, task.at(metric).get<double>(), std::nullopt};
  const auto found = task.find(error_name(metric));
  if (found != task.end() && found->is_number()) score.standard_error = found->get<double>();
  return score;
}

// Members with a comma are METRIC,FILTER: numbers, their standard errors at least 0, or "N/A", or null.
void check_task(const OrderedJson& task, const std::string& where) {
  if (!task.is_object()) throw Error("{} is {}; an object is right", where, json_type_name(Json(task)));
  for (const auto& [metric, value] : task.items()) {
    if (!value.is_number() && metric.find(',') == std::string::npos) continue;
    const bool error = is_error(metric);
    const bool missing = error && (value.is_null() || value == "N/A");
    if (!missing && (!is_score(value) || (error && !(value.get<double>() >= 0))))
      throw Error("{}.{} is {}; a number of at most {:g}{} is right", where, metric,
                  value.is_number() ? json_line(value) : json_type_name(Json(value)), largest_drawn,
                  error ? " and at least 0" : "");
  }
}

std::optional<TaskScore> chosen_score(const OrderedJson& task, const std::optional<std::string>& wanted) {
  std::optional<TaskScore> first;
  if (wanted) {
    const auto found = task.find(*wanted);
    if (found != task.end() && found->is_number() && !is_error(*wanted)) first = score_of(task, *wanted);
    return first;
  }
  if (task.contains(preferred)) return score_of(task, preferred);
  for (const auto& [metric, value] : task.items()) {
    if (!value.is_number() || is_error(metric)) continue;
    TaskScore score = score_of(task, metric);
    if (score.standard_error) return score;
    if (!first) first = std::move(score);
  }
  return first;
}

std::vector<std::string> all_tasks(const std::vector<TaskScores>& evaluations) {
  std::vector<std::string> names;
  for (const TaskScores& evaluation : evaluations)
    for (const auto& [name, score] : evaluation.tasks)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::vector<std::string> metrics_of(const OrderedJson& results) {
  std::vector<std::string> names;
  for (const auto& [task_name, task] : results.items())
    for (const auto& [name, value] : task.items())
      if (value.is_number() && !is_error(name) && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

}  // namespace

TaskScores read_task_scores(const fs::path& file, const std::optional<std::string>& metric) {
  const std::string where = file.string();
  const OrderedJson json = parse_ordered_json(read_file(file), where);
  if (!json.is_object() || !json.contains("results") || !json.at("results").is_object())
    throw Error("{} has no object `results`, which evaluations write", where);
  TaskScores scores{fs::absolute(file).parent_path().filename().string(), file, {}};
  for (const auto& [name, task] : json.at("results").items()) {
    check_task(task, fmt::format("{}: results.{}", where, shortened(name, most_name_columns)));
    std::optional<TaskScore> score = chosen_score(task, metric);
    if (score) scores.tasks.emplace_back(name, std::move(*score));
  }
  const std::vector<std::string> there = metrics_of(json.at("results"));
  if (metric && scores.tasks.empty() && !there.empty())
    throw UsageError("--metric \"{}\" is not in {}; there are {}", *metric, where, fmt::join(there, "; "));
  if (scores.tasks.empty()) throw Error("{} has no task with a number in `results`", where);
  return scores;
}

std::vector<TaskScores> read_cell_scores(const fs::path& folder, const std::optional<std::string>& metric) {
  const std::string where = (folder / "eval.json").string();
  const Json json = read_json_file(where);
  if (!json.is_object() || !json.contains("cells") || !json["cells"].is_array())
    throw Error("{} has no list `cells`", where);
  std::vector<TaskScores> scores;
  for (const Json& cell : json["cells"]) {
    if (!cell.is_object() || !cell.contains("name") || !cell["name"].is_string())
      throw Error("{}: a cell has no name", where);
    const auto name = cell["name"].get<std::string>();
    if (!is_file_name(name))
      throw Error("{}: the cell \"{}\" is no name of a folder", where, shortened(name, most_name_columns));
    const fs::path file = folder / name / "results.json";
    if (fs::exists(file)) scores.push_back(read_task_scores(file, metric));
  }
  if (scores.empty()) throw Error("{} has no cell with a results.json yet", folder.string());
  return scores;
}

Figure score_figure(const std::vector<TaskScores>& evaluations) {
  Figure figure;
  figure.name = "interventions";
  figure.title = "task scores";
  figure.note = "error bars: one standard error";
  figure.columns = {"task", "metric", "value", "standard_error"};
  figure.aggregation["value"] = "as evaluated; error bars: one standard error to either side";
  const std::vector<std::string> tasks = all_tasks(evaluations);
  const double width = 0.8 / static_cast<double>(evaluations.size());
  Panel panel;
  double highest = 0, lowest = 0;
  for (std::size_t e = 0; e < evaluations.size(); ++e) {
    const TaskScores& evaluation = evaluations[e];
    FigurePart part;
    part.run = evaluation.label;
    part.about = {{"run", evaluation.file.string()}, {"kind", "evaluation"}};
    Boxes boxes{evaluation.label, {}, curve_colour(e)};
    for (const auto& [name, score] : evaluation.tasks) {
      const auto group = static_cast<double>(std::find(tasks.begin(), tasks.end(), name) - tasks.begin());
      const double left = group - 0.4 + width * static_cast<double>(e);
      const double error = score.standard_error.value_or(0);
      boxes.boxes.push_back({left + 0.06 * width, left + 0.94 * width, 0, score.value});
      if (score.standard_error)
        panel.errors.push_back({left + width / 2, score.value - error, score.value + error});
      part.rows.push_back({name, score.metric, score.value,
                           score.standard_error ? OrderedJson(error) : OrderedJson(nullptr)});
      highest = std::max(highest, score.value + error);
      lowest = std::min(lowest, score.value - error);
    }
    panel.boxes.push_back(std::move(boxes));
    figure.parts.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) panel.x.ticks.push_back({static_cast<double>(i), tasks[i]});
  panel.x.from = -0.6;
  panel.x.to = static_cast<double>(tasks.size()) - 0.4;
  panel.y = {"score", lowest < 0 ? 1.08 * lowest : 0, highest > 0 ? 1.08 * highest : 1};
  figure.parts[0].panels.push_back(std::move(panel));
  return figure;
}

}  // namespace sinkscope
