// The README's Python snippet and the examples run as printed.
#include <gmock/gmock.h>

#include "support/program.h"

namespace sinkscope {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::filesystem::path python = "/usr/bin/python3";

bool has_numpy() {
  return run_program({"-c", "import numpy"}, {.in_child = {}, .meanwhile = {}, .program = python}).status ==
         0;
}

testing::ProgramResult run_python(const std::vector<std::string>& arguments) {
  return run_program(arguments, {.in_child = {}, .meanwhile = {}, .program = python});
}

class Readme : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_numpy()) GTEST_SKIP() << python << " has no numpy";
    const auto run =
        run_program({"run", "tiny-llada", "--prompt", "How many apples?", "--steps", "8", "--gen-len", "8",
                     "--block-len", "8", "--quiet", "--run-dir", folder / "r"});
    ASSERT_EQ(run.status, 0) << run.error;
  }
  const std::string source = SINKSCOPE_SOURCE_DIR;
  TemporaryFolder folder;
};

TEST_F(Readme, TheSnippetPrintsFiveSinksStrongestFirst) {
  const std::string text = content_of(source + "/README.md");
  const std::string fence = "```python\n";
  const std::size_t begin = text.find(fence) + fence.size();
  std::string code = text.substr(begin, text.find("```", begin) - begin);
  EXPECT_EQ(std::count(code.begin(), code.end(), '\n'), 5);  // five lines, as promised
  const std::string printed = "runs/plain";
  ASSERT_NE(code.find(printed), std::string::npos);
  code.replace(code.find(printed), printed.size(), (folder / "r").string());
  const auto result = run_python({"-c", code});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 5) << result.out;
  EXPECT_THAT(result.out, ::testing::StartsWith("("));
}

TEST_F(Readme, TheExampleOfTheDemoRuns) {
  const std::string sample = folder / "r/sample_00000.npz";
  const auto sinks = run_python({source + "/examples/strongest_sinks.py", sample});
  EXPECT_EQ(sinks.status, 0) << sinks.error;
  EXPECT_THAT(sinks.out, HasSubstr("times the average"));
}

TEST_F(Readme, ADtypeIsComparedWithFloat32) {
  const auto result = run_python(
      {source + "/examples/dtype_agreement.py", SINKSCOPE_PROGRAM, "tiny-llada", folder / "r", "f32"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("8 positions: top-1 agreement 100.00%, largest logit difference 0.000"));
}

}  // namespace
}  // namespace sinkscope
