// Two types of one name in two rooms link without a word and run with each other's code (the one definition
// rule).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace sinkscope {
namespace {

// The word that follows one of `openings` at the start of a line that ends in "{"; "" where the line is
// another.
std::string name_after(const std::string& line, const std::vector<std::string>& openings) {
  if (line.find(" {") == std::string::npos) return "";
  for (const std::string& opening : openings)
    if (line.starts_with(opening))
      return line.substr(opening.size(), line.find(' ', opening.size()) - opening.size());
  return "";
}

// "sinkscope::jinja::Work" for every type that a header defines at the level of a namespace.
std::vector<std::string> types_in(const std::filesystem::path& header) {
  std::vector<std::string> spaces, types;
  std::ifstream file(header);
  for (std::string line; std::getline(file, line);) {
    if (const std::string space = name_after(line, {"namespace "}); !space.empty()) {
      spaces.push_back(space);
    } else if (line.starts_with("}  // namespace") && !spaces.empty()) {
      spaces.pop_back();
    } else if (const std::string type = name_after(line, {"struct ", "class ", "enum class "});
               !type.empty()) {
      std::string name;
      for (const std::string& outer : spaces) name += outer + "::";
      types.push_back(name + type);
    }
  }
  return types;
}

TEST(TypeNames, StandForOneTypeEach) {
  std::map<std::string, std::string> places;
  for (const char* folder : {"/src", "/include"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(SINKSCOPE_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".h") continue;
      for (const std::string& name : types_in(entry.path())) {
        const auto [place, is_new] = places.emplace(name, entry.path().string());
        EXPECT_TRUE(is_new) << name << " is defined in " << place->second << " and in " << entry.path();
      }
    }
  EXPECT_GT(places.size(), 100U);
}

}  // namespace
}  // namespace sinkscope
