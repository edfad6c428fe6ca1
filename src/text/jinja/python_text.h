// What Python's str can do, on UTF-8: positions count characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope::jinja {

std::size_t count_characters(std::string_view text);
/// The characters, each as its bytes.
std::vector<std::string_view> characters_of(std::string_view text);

enum class Ends { both, left, right };
/// strip, lstrip, rstrip without an argument: white space goes.
std::string_view strip_space(std::string_view text, Ends ends);
/// The same with an argument: any of these characters goes.
std::string_view strip_characters(std::string_view text, std::string_view characters, Ends ends);

/// str.split(separator, most); most < 0: without limit. The separator is not empty.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::int64_t most);
/// str.rsplit, which counts from the right.
std::vector<std::string_view> split_at_from_right(std::string_view text, std::string_view separator,
                                                  std::int64_t most);
/// str.split(None, most): at runs of white space.
std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most);
/// str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text);

/// str.replace(from, to, most); most < 0: all. An empty `from` stands between all characters.
std::string replace_text(std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t most);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// str.capitalize: the first character upper, all others lower case.
std::string capitalize(std::string_view text);
/// str.title: upper case behind what is no letter.
std::string title_words(std::string_view text);
/// The filter `title`: upper case at the start and behind spaces, - and opening brackets.
std::string title_filter(std::string_view text);

}  // namespace sinkscope::jinja
