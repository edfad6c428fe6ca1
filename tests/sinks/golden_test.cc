// The reference implementation's choices: from the column sums of step t-1 the keys masked at step t.
#include <gtest/gtest.h>
#include <sinkscope/sinks.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"

namespace sinkscope {
namespace {

// One tensor of a safetensors file of our own, read without the checks a stranger's file would need.
template <typename Value>
std::vector<Value> tensor(const std::string& file, const std::string& name, std::vector<std::size_t>& shape) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), sizeof header_size);
  const Json entry = Json::parse(file.substr(8, header_size)).at(name);
  shape = entry.at("shape").get<std::vector<std::size_t>>();
  const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
  std::vector<Value> values((end - begin) / sizeof(Value));
  std::memcpy(values.data(), file.data() + 8 + header_size + begin, end - begin);
  return values;
}

struct GoldenCase {
  const char* checkpoint;
  const char* name;
  double epsilon;
  int top_k;
};

class GoldenIntervention : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenIntervention, MasksTheSameKeys) {
  const GoldenCase golden = GetParam();
  const auto path = std::filesystem::path(SINKSCOPE_SHARED_DIR) / golden.checkpoint / "golden.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no golden results at " << path;
  const std::string file = read_file(path);
  std::vector<std::size_t> shape;  // [T,B,L,H,S]
  const auto columns = tensor<float>(file, std::string(golden.name) + ".column_sum", shape);
  const auto masked = tensor<std::int32_t>(file, std::string(golden.name) + ".masked_keys", shape);
  const std::size_t step_size = shape[1] * shape[2] * shape[3] * shape[4];
  const InterventionOptions options{.top_k = golden.top_k, .epsilon = golden.epsilon};
  std::size_t total = 0;
  for (std::size_t step = 0; step < shape[0]; ++step) {
    std::vector<std::uint8_t> ours(step_size, 0);  // step 0 has no previous map
    if (step > 0)
      ours = choose_removed_keys({.columns = std::span(columns).subspan((step - 1) * step_size, step_size),
                                  .diagonal = {},
                                  .classes = {},
                                  .positions = shape[4]},
                                 options)
                 .removed;
    for (std::size_t i = 0; i < step_size; ++i) {
      ASSERT_EQ(ours[i], masked[step * step_size + i]) << "step " << step << ", element " << i;
      total += ours[i];
    }
  }
  EXPECT_GT(total, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sinks, GoldenIntervention,
                         testing::Values(GoldenCase{"golden/llada-random", "sink_top1_eps0", 0, 1},
                                         GoldenCase{"golden/llada-random", "sink_top5_eps0", 0, 5},
                                         GoldenCase{"golden/llada-random", "sink_top10_eps0.5", 0.5, 10},
                                         GoldenCase{"golden/dream-random", "sink_top1", 0, 1},
                                         GoldenCase{"golden/dream-random", "sink_top5", 0, 5},
                                         GoldenCase{"golden/mmada-random", "sink_top1_eps0", 0, 1}));

}  // namespace
}  // namespace sinkscope
