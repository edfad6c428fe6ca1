#include <gmock/gmock.h>

#include "support/program.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using testing::run_program;

TEST(Program, HelpListsTheCommandsAndTheirOptions) {
  const auto help = run_program({"--help"});
  EXPECT_EQ(help.status, 0);
  const std::vector<std::pair<std::string, std::string>> commands{
      {"run", "MODEL"}, {"forward", "MODEL"}, {"tokenize", "MODEL"},        {"inspect", "MODEL"},
      {"fetch", "ID"},  {"bench", "MODEL"},   {"make-checkpoint", "--like"}};
  for (const auto& [command, names] : commands) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const auto own = run_program({command, "--help"});
    EXPECT_EQ(own.status, 0);
    EXPECT_THAT(own.out, HasSubstr(names));
  }
}

TEST(Program, VersionIsPrinted) {
  const auto version = run_program({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, HasSubstr("sinkscope " SINKSCOPE_VERSION));
}

TEST(Program, WrongUseExitsWithTwoAndOneSentence) {
  const std::vector<std::vector<std::string>> table{
      {}, {"nonsense"}, {"run", "x", "--nonsense"}, {"run"}, {"inspect"}, {"tokenize"}, {"tokenize", "x"}};
  for (const auto& arguments : table) {
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << result.error;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
}

TEST(Program, AnUnknownCommandIsNamedWithThoseThereAre) {
  const auto result = run_program({"dance", "x"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.error, HasSubstr("'dance'"));
  EXPECT_THAT(result.error, HasSubstr("run, eval, merge, measure, compare, plot, forward, score, tokenize, "
                                      "inspect, fetch, bench, make-checkpoint, train, "
                                      "train-tokenizer"));
}

TEST(Program, AnUnknownInstructionSetIsNamed) {
  const std::string model = std::string(SINKSCOPE_TEST_DATA) + "/golden/llada-random";
  const auto result = run_program({"forward", model, "--ids", "1", "--out", "/dev/null"},
                                  {.in_child = [] { ::setenv("SINKSCOPE_CPU", "mmx", 1); }});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.error, HasSubstr("mmx"));
}

}  // namespace
}  // namespace sinkscope
