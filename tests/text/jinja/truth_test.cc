// What Jinja itself makes of some 600 templates (tests/data/jinja/generate.py).
#include <fstream>

#include "base/files.h"
#include "text/jinja/render.h"

namespace sinkscope::jinja {
namespace {

const std::string folder = std::string(SINKSCOPE_TEST_DATA) + "/jinja/";

TEST(JinjaTruth, TextsAgree) {
  const auto names = nlohmann::ordered_json::parse(read_file(folder + "context.json"));
  std::ifstream lines(folder + "truth.jsonl");
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json truth = parse_json(line, folder + "truth.jsonl");
    const auto program = truth.at("template").get<std::string>();
    if (truth.contains("error"))
      EXPECT_THROW(render(program, names), Error) << program;
    else
      EXPECT_EQ(render(program, names), truth.at("text").get<std::string>()) << program;
  }
  EXPECT_GT(count, 600u);
}

}  // namespace
}  // namespace sinkscope::jinja
