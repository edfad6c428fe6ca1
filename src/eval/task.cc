#include "eval/task.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/ordered_json.h"
#include "checkpoint/config_keys.h"
#include "eval/built_in_tasks.h"
#include "text/json_fields.h"

namespace sinkscope {
namespace {

constexpr std::int64_t most_shots = 1000;
constexpr std::int64_t longest_response = 1 << 20;
constexpr double longest_time = 3600;

void refuse_unknown(const JsonPlace& place, const std::vector<std::string>& known) {
  refuse_unknown_keys({place.value, place.where}, known);
}

std::vector<std::string> strings_of(const std::optional<JsonPlace>& place) {
  std::vector<std::string> strings;
  if (place)
    for (std::size_t i = 0; i < place->array_size(); ++i) strings.push_back(place->element(i).as_string());
  return strings;
}

PythonRegex regex_of(const JsonPlace& place) { return {place.as_string(), place.where}; }

FewShot read_shots(const JsonPlace& place) {
  refuse_unknown(place, {"count", "data", "doc_to_target", "sampler", "task_ids"});
  FewShot shots;
  shots.count = place.at("count").as_integer(0, most_shots);
  shots.data = place.at("data").as_string();
  shots.first =
      choice<bool>({place.value, place.where}, "sampler", false, {{"first_n", true}, {"random", false}});
  shots.target = place.string_or("doc_to_target", "");
  if (const auto ids = place.find("task_ids"))
    for (std::size_t i = 0; i < ids->array_size(); ++i)
      shots.ids.push_back(ids->element(i).as_integer(INT64_MIN, INT64_MAX));
  if (!shots.ids.empty() && !shots.first)
    throw Error("{}: task_ids need \"sampler\": \"first_n\"", place.where);
  return shots;
}

// "METRIC,FILTER" is how results are named.
void check_key(const std::string& name, const std::string& where) {
  if (name.empty() || name.find(',') != std::string::npos)
    throw Error("{} is \"{}\"; a name without a comma would be right", where, name);
}

ResponseFilter read_filter(const JsonPlace& place) {
  refuse_unknown(place, {"fallback", "match", "name", "regex", "take"});
  using Kind = ResponseFilter::Kind;
  const ConfigSource source{place.value, place.where};
  ResponseFilter filter;
  filter.name = place.at("name").as_string();
  check_key(filter.name, place.where + ".name");
  filter.kind = choice<Kind>(source, "take", Kind::whole,
                             {{"whole", Kind::whole},
                              {"raw", Kind::raw},
                              {"boxed", Kind::boxed},
                              {"before_fence", Kind::before_fence}});
  filter.last = choice<bool>(source, "match", false, {{"first", false}, {"last", true}});
  filter.fallback = place.string_or("fallback", filter.fallback);
  if (const auto regex = place.find("regex")) {
    if (place.find("take"))
      throw Error("{} has both \"regex\" and \"take\"; one of them would be right", place.where);
    filter.kind = Kind::pattern;
    filter.pattern = regex_of(*regex);
  }
  return filter;
}

void read_scoring(const JsonPlace& place, Task& task) {
  task.metric = choice<Metric>({place.value, place.where}, "metric", Metric::exact_match,
                               {{"exact_match", Metric::exact_match},
                                {"math_equal", Metric::math_equal},
                                {"countdown", Metric::countdown},
                                {"sudoku", Metric::sudoku},
                                {"code", Metric::code}});
  task.metric_name = place.string_or("metric_name", place.string_or("metric", "exact_match"));
  check_key(task.metric_name, place.where + ": metric_name");
  for (const char* taken :
       {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "reason"})
    if (task.metric_name == taken)
      throw Error("{}: metric_name is {}, which the lines of scored samples have for something else",
                  place.where, taken);
  if (const auto filters = place.find("filters"))
    for (std::size_t i = 0; i < filters->array_size(); ++i)
      task.filters.push_back(read_filter(filters->element(i)));
  if (task.filters.empty()) task.filters.emplace_back();
  for (std::size_t i = 0; i < task.filters.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (task.filters[i].name == task.filters[k].name)
        throw Error("{} has two filters named \"{}\"; names that differ would be right", place.where,
                    task.filters[i].name);
  if (const auto ignored = place.find("ignore"))
    for (std::size_t i = 0; i < ignored->array_size(); ++i)
      task.ignored.push_back(regex_of(ignored->element(i)));
  task.ignore_case = place.bool_or("ignore_case", false);
  if (task.metric != Metric::code) return;
  task.program = place.at("program").as_string();
  task.tests = place.at("tests").as_string();
}

double read_time_limit(const JsonPlace& place) {
  const auto limit = place.find("time_limit");
  if (!limit) return Task().time_limit;
  const double seconds = limit->value.is_number() ? limit->value.get<double>() : 0;
  if (!(seconds > 0 && seconds <= longest_time))
    throw Error("{} must be a number of seconds, above 0 and at most {}", limit->where, longest_time);
  return seconds;
}

void read_posing(const JsonPlace& place, Task& task) {
  task.doc_to_text = place.at("doc_to_text").as_string();
  task.gen_prefix = place.string_or("gen_prefix", "");
  task.introduction = place.string_or("description", "");
  task.target_delimiter = place.string_or("target_delimiter", task.target_delimiter);
  task.shot_delimiter = place.string_or("fewshot_delimiter", task.shot_delimiter);
  if (task.kind == TaskKind::choose) {
    task.choices = place.at("doc_to_choice").as_string();
    task.label = place.at("doc_to_label").as_string();
  } else {
    task.doc_to_target = place.at("doc_to_target").as_string();
  }
  if (const auto cleaning = place.find("clean"))
    for (std::size_t i = 0; i < cleaning->array_size(); ++i) {
      const JsonPlace pair = cleaning->element(i);
      if (pair.array_size() != 2) throw Error("{} must be a pattern and what takes its place", pair.where);
      task.cleaning.emplace_back(regex_of(pair.element(0)), pair.element(1).as_string());
    }
}

std::string check_name(const JsonPlace& place) {
  const std::string& name = place.as_string();
  const bool right = !name.empty() && name.size() <= 100 && name.front() != '.' &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
                     });
  if (!right)
    throw Error("{} must be a name of letters, digits, _, - and . that files can bear", place.where);
  return name;
}

}  // namespace

Task read_task(const nlohmann::ordered_json& description, const std::string& where) {
  const Json json = description;
  const JsonPlace place{json, where};
  if (!json.is_object()) throw Error("{} is {}; an object would be right", where, json_type_name(json));
  refuse_unknown(place, {"clean",
                         "data",
                         "description",
                         "doc_to_choice",
                         "doc_to_label",
                         "doc_to_target",
                         "doc_to_text",
                         "fewshot",
                         "fewshot_delimiter",
                         "filters",
                         "gen_len",
                         "gen_prefix",
                         "ignore",
                         "ignore_case",
                         "metric",
                         "metric_name",
                         "output_type",
                         "program",
                         "target_delimiter",
                         "task",
                         "task_ids",
                         "tests",
                         "time_limit",
                         "until",
                         "version"});
  Task task;
  task.name = check_name(place.at("task"));
  task.description = description;
  if (const auto version = place.find("version")) task.version = version->as_integer(0, 1'000'000);
  task.kind =
      choice<TaskKind>({json, where}, "output_type", TaskKind::generate,
                       {{"generate_until", TaskKind::generate}, {"multiple_choice", TaskKind::choose}});
  const JsonPlace data = place.at("data");
  task.data = data.value.is_array() ? strings_of(data) : std::vector{data.as_string()};
  if (task.data.empty()) throw Error("{} names no file", data.where);
  if (const auto kept = place.find("task_ids")) {
    if (kept->array_size() != 2) throw Error("{} must be the first and the last of a range", kept->where);
    task.kept = {kept->element(0).as_integer(INT64_MIN, INT64_MAX),
                 kept->element(1).as_integer(INT64_MIN, INT64_MAX)};
  }
  if (const auto shots = place.find("fewshot")) task.shots = read_shots(*shots);
  read_posing(place, task);
  task.until = strings_of(place.find("until"));
  if (std::find(task.until.begin(), task.until.end(), "") != task.until.end())
    throw Error("{}: until holds an empty text, which would end every response", where);
  if (const auto length = place.find("gen_len")) task.gen_len = length->as_integer(1, longest_response);
  task.time_limit = read_time_limit(place);
  read_scoring(place, task);
  return task;
}

Task find_task(const std::string& name) {
  if (name.ends_with(".json")) {
    constexpr std::uintmax_t longest_description = std::uintmax_t{1} << 20;
    Task task = read_task(parse_ordered_json(read_file(name, longest_description), name), name);
    task.folder = std::filesystem::absolute(name).parent_path();
    return task;
  }
  const std::string_view json = built_in_task(name);
  if (json.empty())
    throw UsageError("there is no task \"{}\"; one of {}, or a .json file that describes one, would be right",
                     name, fmt::join(built_in_task_names(), ", "));
  return read_task(nlohmann::ordered_json::parse(json), "task " + name);
}

}  // namespace sinkscope
