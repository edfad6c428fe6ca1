// Answers that were generated elsewhere.
#pragma once

#include <filesystem>
#include <vector>

#include "eval/posing.h"
#include "eval/scoring.h"

namespace sinkscope {

/// JSON Lines: the answer is `response`, `text`, or the first of `resps` (as in lm-evaluation-harness's
/// samples_TASK.jsonl); its problem `doc_id`, `index`, or the number of the line from 0. An answer may be
/// there twice, as the harness has it once a filter; problems without one are left out. Sorted by problem.
/// Throws Error naming file and line of what is neither, of a problem that there is not, and of two answers
/// that differ.
std::vector<Response> read_responses(const std::filesystem::path& path, const std::vector<Problem>& problems,
                                     const std::vector<std::string>& until);

}  // namespace sinkscope
