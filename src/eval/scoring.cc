#include "eval/scoring.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "eval/math_answer.h"
#include "eval/planning.h"
#include "eval/responses.h"
#include "eval/task_template.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson line_begin(const Task& task, const Problem& problem) {
  OrderedJson arguments{{"arg_0", problem.context + problem.gen_prefix}};
  if (task.kind == TaskKind::generate)
    arguments["arg_1"] = {{"until", task.until}, {"max_gen_toks", task.gen_len}};
  OrderedJson line{{"doc_id", problem.index}, {"doc", problem.document}, {"target", problem.target}};
  line["arguments"] = OrderedJson{{"gen_args_0", arguments}};
  return line;
}

// Arguments, log-likelihoods and choices side by side; accuracy by likelihood and by likelihood per
// character.
OrderedJson chosen_line(const Task& task, const Response& response) {
  const Problem& problem = *response.problem;
  OrderedJson line = line_begin(task, problem);
  line["target"] = problem.label;
  line["arguments"] = OrderedJson::object();
  OrderedJson likelihoods = OrderedJson::array();
  std::vector<double> per_character;
  for (std::size_t i = 0; i < problem.choices.size(); ++i) {
    line["arguments"][fmt::format("gen_args_{}", i)] = {
        {"arg_0", problem.context}, {"arg_1", task.target_delimiter + problem.choices[i]}};
    likelihoods.push_back(response.loglikelihoods[i]);
    std::size_t characters = 0;
    for (const char c : problem.choices[i])
      characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    per_character.push_back(response.loglikelihoods[i] /
                            static_cast<double>(std::max<std::size_t>(characters, 1)));
  }
  const auto best = [](const std::vector<double>& values) {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  };
  line["resps"] = OrderedJson::array({likelihoods});
  line["filtered_resps"] = likelihoods;
  line["filter"] = "none";
  line["metrics"] = {"acc", "acc_norm"};
  line["acc"] = best(response.loglikelihoods) == problem.label ? 1.0 : 0.0;
  line["acc_norm"] = best(per_character) == problem.label ? 1.0 : 0.0;
  return line;
}

// Of a puzzle, the member that holds it.
std::string puzzle_of(const Problem& problem) {
  const auto input = problem.document.find("input");
  if (input == problem.document.end() || !input->is_string())
    throw Error("the problem has no text `input`, which the metrics countdown and sudoku read");
  return input->get<std::string>();
}

bool is_right(const Task& task, const Problem& problem, const std::string& answer) {
  switch (task.metric) {
    case Metric::math_equal:
      return is_math_equal(answer, problem.target);
    case Metric::countdown:
      return solves_countdown(puzzle_of(problem), answer);
    case Metric::sudoku:
      return solves_sudoku(puzzle_of(problem), answer);
    default:
      return is_exact_match(task, answer, problem.target);
  }
}

// What goes wrong says with which problem.
template <typename Action>
auto with_problem(const Task& task, const Problem& problem, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error("task {}, problem {}: {}", task.name, problem.index, error.what());
  }
}

std::vector<CodeVerdict> run_programs(const Task& task, std::span<const Response> responses,
                                      const CodeRunner& run) {
  if (!run) throw Error("task {} needs generated programs to be run", task.name);
  const TaskTemplate program(task.program, "task " + task.name + ": program");
  const TaskTemplate tests(task.tests, "task " + task.name + ": tests");
  std::vector<CodeProgram> programs;
  for (const Response& response : responses)
    for (const ResponseFilter& filter : task.filters) {
      programs.push_back(with_problem(task, *response.problem, [&] {
        OrderedJson names = response.problem->document;
        names["response"] = replace_invalid_utf8(filtered(filter, response.text));
        return CodeProgram{program.render(names), tests.render(names), task.time_limit};
      }));
    }
  std::vector<CodeVerdict> verdicts = run(programs);
  if (verdicts.size() != programs.size())
    throw Error("{} programs were run of {}", verdicts.size(), programs.size());
  return verdicts;
}

// One response by one filter. verdict: of metric code.
OrderedJson generated_line(const Task& task, const Response& response, const ResponseFilter& filter,
                           const CodeVerdict* verdict) {
  const std::string answer = filtered(filter, response.text);
  OrderedJson line = line_begin(task, *response.problem);
  line["resps"] = {OrderedJson::array({response.text})};
  line["filtered_resps"] = OrderedJson::array({answer});
  line["filter"] = filter.name;
  line["metrics"] = OrderedJson::array({task.metric_name});
  const bool right = verdict != nullptr ? verdict->passed : is_right(task, *response.problem, answer);
  line[task.metric_name] = right ? 1.0 : 0.0;
  if (verdict != nullptr) line["reason"] = verdict->reason;
  return line;
}

}  // namespace

void check_puzzles(const Task& task, std::span<const Problem> problems) {
  if (task.metric != Metric::countdown && task.metric != Metric::sudoku) return;
  for (const Problem& problem : problems)
    with_problem(task, problem, [&] { return is_right(task, problem, ""); });
}

std::vector<OrderedJson> score_responses(const Task& task, std::span<const Response> responses,
                                         const CodeRunner& run) {
  std::vector<OrderedJson> lines;
  std::vector<CodeVerdict> verdicts;
  const bool is_code = task.kind == TaskKind::generate && task.metric == Metric::code;
  if (is_code) verdicts = run_programs(task, responses, run);
  for (const Response& response : responses) {
    if (task.kind == TaskKind::choose) {
      lines.push_back(chosen_line(task, response));
      continue;
    }
    for (const ResponseFilter& filter : task.filters) {
      const CodeVerdict* verdict = is_code ? &verdicts[lines.size()] : nullptr;
      lines.push_back(with_problem(task, *response.problem,
                                   [&] { return generated_line(task, response, filter, verdict); }));
    }
  }
  return lines;
}

OrderedJson aggregate(const std::string& name, std::span<const OrderedJson> lines) {
  struct Sum {
    std::string metric, filter;
    double count = 0, sum = 0, squares = 0;
  };
  std::vector<Sum> sums;  // in the order in which they are met
  for (const OrderedJson& line : lines)
    for (const OrderedJson& metric : line.at("metrics")) {
      const auto key = metric.get<std::string>();
      const auto filter = line.at("filter").get<std::string>();
      auto found = std::find_if(sums.begin(), sums.end(),
                                [&](const Sum& sum) { return sum.metric == key && sum.filter == filter; });
      if (found == sums.end()) found = sums.insert(sums.end(), {key, filter, 0, 0, 0});
      const double value = line.at(key).get<double>();
      found->count += 1;
      found->sum += value;
      found->squares += value * value;
    }
  OrderedJson result{{"alias", name}};
  for (const Sum& sum : sums) {
    const double mean = sum.sum / sum.count;
    const double spread = std::max(0.0, sum.squares / sum.count - mean * mean);
    result[sum.metric + "," + sum.filter] = mean;
    result[sum.metric + "_stderr," + sum.filter] =
        sum.count < 2 ? OrderedJson() : OrderedJson(std::sqrt(spread / (sum.count - 1)));
  }
  return result;
}

}  // namespace sinkscope
