// bench/eager_layer.py, where there is a PyTorch.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

testing::ProgramResult run_python(const std::vector<std::string>& arguments) {
  return testing::run_program(arguments, {.in_child = {}, .meanwhile = {}, .program = "/usr/bin/python3"});
}

const std::string script = std::string(SINKSCOPE_SOURCE_DIR) + "/bench/eager_layer.py";

TEST(EagerLayer, CountsTheFlopsOfOneLayer) {
  if (run_python({"-c", "import torch"}).status != 0) GTEST_SKIP() << "/usr/bin/python3 has no PyTorch";
  const auto result = run_python({script, "--positions", "8", "--width", "64", "--heads", "4", "--mlp", "192",
                                  "--dtype", "f32", "--repeat", "2", "--json"});
  ASSERT_EQ(result.status, 0) << result.error;
  const auto report = nlohmann::json::parse(result.out);
  const double flops = 2 * 8 * (4 * 64 * 64 + 3 * 64 * 192) + 4 * 8 * 8 * 64;
  EXPECT_EQ(report["flops"], flops);
  EXPECT_DOUBLE_EQ(report["seconds"].get<double>() * report["gflops"].get<double>() * 1e9, flops);
  EXPECT_GT(report["peak_resident_mb"], 10);
}

TEST(EagerLayer, WithoutPyTorchItSaysHowToGetIt) {
  // -S: without the distribution's packages
  const auto result = run_python({"-S", script});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, ::testing::HasSubstr("apt-get install python3-torch"));
}

}  // namespace
}  // namespace sinkscope
