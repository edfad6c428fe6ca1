// Responses to a task's problems as the lines of samples_TASK.jsonl, and their means.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/posing.h"
#include "eval/task.h"

namespace sinkscope {

/// What became of a generated program.
struct CodeVerdict {
  bool passed = false;
  std::string reason;  ///< one sentence
};

/// Runs programs, each with its tests behind it; verdicts in the same order.
struct CodeProgram {
  std::string program;
  std::string tests;
  double time_limit = 3;  ///< seconds
};
using CodeRunner = std::function<std::vector<CodeVerdict>(std::span<const CodeProgram>)>;

/// The response to one problem.
struct Response {
  const Problem* problem = nullptr;
  std::string text;                    ///< Task::until cut off
  std::vector<double> loglikelihoods;  ///< of the choices, nats; TaskKind::choose
};

/// Of the metrics countdown and sudoku: throws Error naming the problem whose `input` is no such puzzle.
void check_puzzles(const Task& task, std::span<const Problem> problems);

/// One line for each response and filter, in that order: doc_id, doc, target, arguments, resps,
/// filtered_resps, filter, metrics, the metrics' values. The members are lm-evaluation-harness's; `reason` is
/// ours (code). `run` is needed by tasks whose metric is code. Throws Error naming the problem where a
/// template or a pattern fails.
std::vector<nlohmann::ordered_json> score_responses(const Task& task, std::span<const Response> responses,
                                                    const CodeRunner& run = nullptr);

/// Of such lines, the task's entry in results.json: for each metric and filter "METRIC,FILTER" (the mean) and
/// "METRIC_stderr,FILTER" (deviation / sqrt(n), of 0/1 scores sqrt(p (1 - p) / (n - 1)); null below two
/// lines).
nlohmann::ordered_json aggregate(const std::string& name, std::span<const nlohmann::ordered_json> lines);

}  // namespace sinkscope
