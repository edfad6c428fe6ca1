// A benchmark task: where its problems are, how they are posed, how answers are scored. Built-in tasks and
// those that a user describes are JSON objects of the same form (docs/eval.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/python_regex.h"

namespace sinkscope {

/// What is asked of the model.
enum class TaskKind {
  generate,  ///< an answer
  choose,    ///< the likelihoods of given answers
};

/// How an answer becomes a score.
enum class Metric {
  exact_match,  ///< the same text, but for what is ignored
  math_equal,   ///< the same mathematical answer by normalisation (math_answer.h)
  countdown,    ///< equations that make the target of the given numbers (planning.h)
  sudoku,       ///< a 4 x 4 sudoku solved (planning.h)
  code,         ///< a program that passes its tests
};

/// What of a response is scored. The filters of a task are scored side by side.
struct ResponseFilter {
  enum class Kind {
    whole,         ///< the response, white space at its ends left out
    raw,           ///< the response as it is
    pattern,       ///< a match of `pattern`, or what its first group with a text holds
    boxed,         ///< the content of the last \boxed{...}
    before_fence,  ///< what stands before the first ```
  };
  std::string name = "none";
  Kind kind = Kind::whole;
  std::optional<PythonRegex> pattern;
  bool last = false;                   ///< which match: the first or the last
  std::string fallback = "[invalid]";  ///< where nothing is found
};

/// Solved examples in front of the problem.
struct FewShot {
  std::int64_t count = 0;
  std::string data;               ///< JSON Lines, found as Task::data is
  bool first = false;             ///< the first ones of the file (or those of `ids`), else drawn per problem
  std::string target;             ///< template of the answer; empty: Task::doc_to_target
  std::vector<std::int64_t> ids;  ///< values of the member `task_id`, in this order
};

struct Task {
  std::string name;
  nlohmann::ordered_json description;  ///< as read
  std::filesystem::path folder;        ///< of the file it was read from; empty for built-in ones
  std::int64_t version = 1;
  TaskKind kind = TaskKind::generate;

  std::vector<std::string> data;  ///< JSON Lines of problems: the first of these that is there
  std::optional<std::pair<std::int64_t, std::int64_t>>
      kept;  ///< only problems whose `task_id` is in this range
  FewShot shots;

  // Templates over the members of a problem.
  std::string doc_to_text, doc_to_target, gen_prefix;
  std::string introduction;  ///< before everything else
  std::string target_delimiter = " ", shot_delimiter = "\n\n";
  std::string choices, label;  ///< members of a problem: its answers and the index of the right one
  std::vector<std::pair<PythonRegex, std::string>> cleaning;  ///< of problems and choices, in turn

  std::vector<std::string> until;  ///< a response ends before these
  std::int64_t gen_len = 256;      ///< tokens of a response
  std::vector<ResponseFilter> filters;
  Metric metric = Metric::exact_match;
  std::string metric_name;
  std::vector<PythonRegex> ignored;  ///< left out of answer and target before they are compared, in turn
  bool ignore_case = false;

  // Metric::code: templates over the members of a problem and `response`.
  std::string program, tests;
  double time_limit = 3;  ///< seconds
};

/// Reads a description. `where` names it in errors. Throws Error naming the member that is missing, unknown
/// or not what it should be.
Task read_task(const nlohmann::ordered_json& description, const std::string& where);

/// The built-in task of this name, or that of a file whose name ends in `.json`. Throws UsageError listing
/// the built-in names.
Task find_task(const std::string& name);

}  // namespace sinkscope
