#include "eval/given_responses.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/text_parts.h"
#include "eval/responses.h"

namespace sinkscope {
namespace {

std::optional<std::string> text_in(const Json& line) {
  for (const char* name : {"response", "text"})
    if (line.contains(name) && line[name].is_string()) return line[name].get<std::string>();
  Json value = line.value("resps", Json());
  while (value.is_array() && !value.empty()) value = Json(value.front());
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

std::size_t problem_in(const Json& line, std::size_t number, std::size_t problems, const std::string& where) {
  for (const char* name : {"doc_id", "index"}) {
    if (!line.contains(name)) continue;
    const bool right = line[name].is_number_unsigned() && line[name].get<std::uint64_t>() < problems;
    if (!right)
      throw Error("{}: {} is {}; the task's problems are 0 to {}", where, name, json_line(line[name]),
                  problems - 1);
    return line[name].get<std::size_t>();
  }
  if (number >= problems) throw Error("{}: the task has {} problems only", where, problems);
  return number;
}

}  // namespace

std::vector<Response> read_responses(const std::filesystem::path& path, const std::vector<Problem>& problems,
                                     const std::vector<std::string>& until) {
  const std::string content = read_file(path);
  std::map<std::size_t, std::string> texts;
  const std::vector<std::string_view> lines = lines_of(content);
  std::size_t number = 0;  // answers come in the order of the problems, blank lines between
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_blank(lines[i])) continue;
    const std::string where = fmt::format("{} line {}", path.string(), i + 1);
    const Json line = parse_json(lines[i], where);
    if (!line.is_object())
      throw Error("{} is {}; an object with `response` would be right", where, json_type_name(line));
    const std::optional<std::string> text = text_in(line);
    if (!text) throw Error("{} holds no answer; a text `response` would be right", where);
    const auto [place, is_new] = texts.emplace(problem_in(line, number++, problems.size(), where), *text);
    if (!is_new && place->second != *text)
      throw Error("{}: problem {} has another answer already", where, place->first);
  }
  if (texts.empty()) throw Error("{} holds no answer", path.string());
  std::vector<Response> responses;
  for (auto& [index, text] : texts)
    responses.push_back({&problems[index], cut_at(std::move(text), until), {}});
  return responses;
}

}  // namespace sinkscope
