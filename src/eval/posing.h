// The problems of a task as texts for a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/task.h"

namespace sinkscope {

/// One problem. Texts are valid UTF-8.
struct Problem {
  std::int64_t index = 0;           ///< among the task's problems, from 0: the harness's doc_id
  nlohmann::ordered_json document;  ///< its members, in their order
  std::string context;              ///< introduction, examples and problem
  std::string gen_prefix;           ///< how the answer begins, delimiter included; "" mostly
  std::string target;               ///< the known answer; of a choice, the right one
  std::vector<std::string> choices;
  std::size_t label = 0;  ///< index of the right choice
};

struct PosingOptions {
  std::filesystem::path data_dir;
  std::string shots;                        ///< file of examples in the place of the task's
  std::optional<std::int64_t> num_fewshot;  ///< in the place of the task's
  std::optional<std::int64_t> limit;        ///< only the first problems
};

/// Where one of a task's files lies, the first of `names` that does: beside the description, below data_dir,
/// or there without its folder's name. Throws Error naming the places looked at.
std::filesystem::path find_data(const Task& task, const std::vector<std::string>& names,
                                const std::filesystem::path& data_dir);

struct PosedTask {
  std::vector<Problem> problems;
  std::size_t original = 0;  ///< how many the file holds
};

/// The problems, in the order of the file. Examples that are drawn are drawn as lm-evaluation-harness draws
/// them: by one Python random.Random(1234) for all problems in turn; from the problems' own file one more, of
/// which the problem itself or else the last falls away. Throws Error naming file and line of what does not
/// fit.
PosedTask pose_problems(const Task& task, const PosingOptions& options);

}  // namespace sinkscope
