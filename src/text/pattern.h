// The pattern of a Split or Replace component: a literal string or a regular expression.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/json_fields.h"
#include "text/regex.h"
#include "text/span.h"

namespace sinkscope {

using Pattern = std::variant<std::string, Regex>;

/// Reads {"String": s} or {"Regex": r}. An empty pattern throws Error.
Pattern read_pattern(const JsonPlace& place);

/// Appends the stretches of text to out, matched and not, in order and without gaps; offset is added to
/// positions.
void find_pattern(const Pattern& pattern, std::string_view text, std::size_t offset,
                  std::vector<MatchedSpan>& out);

/// text with every match replaced by content.
std::string replace_pattern(const Pattern& pattern, std::string_view text, std::string_view content);

/// Reads the two fields of a Replace component. `$` in the content of a regular expression throws Error:
/// releases of the Hugging Face library differ in whether it names a group.
struct Replacement {
  Pattern pattern;
  std::string content;
};
Replacement read_replacement(const JsonPlace& place);

}  // namespace sinkscope
