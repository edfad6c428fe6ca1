#include "cli/json_lines.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "base/json.h"
#include "base/ordered_json.h"

namespace sinkscope {

void for_each_line(const std::string& file,
                   const std::function<void(const std::string& line, const std::string& where)>& body) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened) throw Error("cannot open {}", file);
  }
  std::istream& input = file == "-" ? std::cin : opened;
  std::string line;
  for (std::size_t number = 1; std::getline(input, line); ++number)
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      body(line, fmt::format("{} line {}", file, number));
  if (input.bad()) throw Error("cannot read {}", file);
}

std::vector<nlohmann::ordered_json> read_objects(const std::string& file) {
  std::vector<nlohmann::ordered_json> objects;
  for_each_line(file, [&](const std::string& line, const std::string& where) {
    if (!objects.emplace_back(parse_ordered_json(line, where)).is_object())
      throw Error("{} must hold a JSON object", where);
  });
  return objects;
}

std::string text_of_line(const std::string& line, const std::string& where) {
  const Json value = parse_json(line, where);
  if (!value.is_object() || !value.contains("text") || !value["text"].is_string())
    throw Error("{} must hold a JSON object with the string `text`", where);
  return value["text"].get<std::string>();
}

void print_line(const std::string& line) {
  if (std::puts(line.c_str()) < 0) throw Error("cannot write to standard output");
}

}  // namespace sinkscope
