// What of a model's response counts as its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/task.h"

namespace sinkscope {

/// The text before the first of each of these, one after the other.
std::string cut_at(std::string text, const std::vector<std::string>& until);

/// The answer as the filter finds it. A pattern takes the first or last match as the harness does: of its
/// groups the first that holds something, white space at the ends left out; `fallback` where nothing matches.
std::string filtered(const ResponseFilter& filter, const std::string& response);

/// Whether answer and target are the same once the task's ignored patterns are taken out of both in turn,
/// and, where it says so, upper case is lower case.
bool is_exact_match(const Task& task, const std::string& answer, const std::string& target);

}  // namespace sinkscope
