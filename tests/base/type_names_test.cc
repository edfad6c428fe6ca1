// Two types of one name in two rooms link without a word and run with each other's code (the one definition
// rule).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace sinkscope {
namespace {

// "sinkscope::jinja::Work" for every type that a header defines at the level of a namespace.
std::vector<std::string> types_in(const std::filesystem::path& header) {
  const std::regex opened("^namespace ([A-Za-z_:]+) \\{"), closed("^\\}  // namespace.*");
  const std::regex type("^(?:struct|class|enum class) ([A-Za-z_]+)(?: final)?(?: : [^;{]*)? \\{.*");
  std::vector<std::string> spaces, types;
  std::ifstream file(header);
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_search(line, match, opened)) {
      spaces.push_back(match[1]);
    } else if (std::regex_match(line, closed) && !spaces.empty()) {
      spaces.pop_back();
    } else if (std::regex_match(line, match, type)) {
      std::string name;
      for (const std::string& space : spaces) name += space + "::";
      types.push_back(name + match[1].str());
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
