// Texts that a prefix LM, or a model of learnt positions, has no answer for.
#include <gmock/gmock.h>
#include <sinkscope/autoregressive_sampler.h>
#include <sinkscope/error.h>
#include <sinkscope/likelihood.h>

#include "support/variant_model.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using testing::usage_error_of;
using testing::variant_checkpoint;

std::string error_of_sampling(const Transformer& model, std::size_t prompt, std::int64_t gen_len) {
  AutoregressiveOptions options;
  options.gen_len = gen_len;
  const std::vector<SampleRequest> requests{{{1, 2, 3, 4, 5}, 1}, {std::vector<std::int32_t>(prompt, 7), 2}};
  return usage_error_of([&] { sample_autoregressive(model, requests, options); });
}

TEST(TextLength, APrefixIsGivenWhole) {
  const Transformer model(variant_checkpoint("llama-tiny", {.prefix = 4}), {});
  EXPECT_EQ(error_of_sampling(model, 4, 3), "(no UsageError)");
  EXPECT_EQ(
      error_of_sampling(model, 3, 3),
      "a prompt has 3 tokens: the first 4 of this model see each other and are not predicted, so at least "
      "4 have to be given");
  const auto score = [&](std::size_t context) {
    const std::vector<LikelihoodRequest> requests{{std::vector<std::int32_t>(context, 7), {8, 9}, 1}};
    return usage_error_of([&] { autoregressive_likelihoods(model, requests); });
  };
  EXPECT_EQ(score(4), "(no UsageError)");
  EXPECT_THAT(score(3), HasSubstr("a context has 3 tokens: the first 4"));
}

// The last token is written and not read.
TEST(TextLength, AnAnswerEndsWithTheLearntPositions) {
  const Transformer model(variant_checkpoint("llama-tiny", {.positions = PositionEncoding::learned}), {});
  EXPECT_EQ(error_of_sampling(model, 7, 10), "(no UsageError)");
  EXPECT_EQ(error_of_sampling(model, 7, 11),
            "a prompt with what is generated has 17 positions, the model has learnt 16");
}

}  // namespace
}  // namespace sinkscope
