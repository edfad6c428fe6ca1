#include "model/flops.h"

#include <gmock/gmock.h>

namespace sinkscope {
namespace {

ModelConfig llada_8b() {
  ModelConfig config;
  config.layers = 32;
  config.heads = config.kv_heads = 32;
  config.head_dim = 128;
  config.width = 4096;
  config.mlp_width = 12288;
  config.embedding_rows = config.head_rows = 126464;
  return config;
}

TEST(Flops, EveryWeightOfAMatrixMeetsEveryPositionOnce) {
  // LLaDA-8B's published number of parameters without the embedding, which is looked up, and 65 norms
  const double matrix_elements = 8'015'581'184.0 - 126464.0 * 4096 - 65.0 * 4096;
  const ForwardFlops flops = forward_flops(llada_8b(), 512, 512);
  EXPECT_EQ(flops.projections + flops.mlp + flops.head, 2 * 512 * matrix_elements);
  EXPECT_EQ(flops.total(), flops.projections + flops.attention + flops.mlp + flops.head);
}

TEST(Flops, AttentionMultipliesEveryQueryWithEveryKeyAndValue) {
  ModelConfig config = llada_8b();
  config.kv_heads = 4;  // fewer keys to project, as many to multiply: each serves several heads
  const double scores_and_values = 2.0 * 2.0 * 32 * 32 * 512.0 * 512.0 * 128;
  EXPECT_EQ(forward_flops(config, 512, 512).attention, scores_and_values);
  // query and output 4096 x 4096, key and value 512 x 4096
  EXPECT_EQ(forward_flops(config, 512, 512).projections, 2.0 * 32 * 512 * 4096 * (2 * 4096 + 2 * 512));
}

TEST(Flops, TheLastBlockAndTheHeadCountTheWantedRows) {
  const ForwardFlops all = forward_flops(llada_8b(), 512, 512), some = forward_flops(llada_8b(), 512, 100);
  EXPECT_EQ(all.head - some.head, 2.0 * 412 * 4096 * 126464);
  EXPECT_EQ(all.mlp - some.mlp, 6.0 * 412 * 4096 * 12288);
  EXPECT_EQ(all.projections - some.projections, 2.0 * 412 * 4096 * 4096);
  EXPECT_EQ(all.attention - some.attention, 2.0 * 412 * 512 * 4096);
  EXPECT_EQ(forward_flops(llada_8b(), 512, 0).head, 0);
}

TEST(Flops, TheFormulaForPeopleHasTheNumbers) {
  const std::string text = describe_flops(llada_8b(), 512, 256);
  EXPECT_THAT(text, testing::HasSubstr("32 * 2 * 512 * 512 * 4096 + (31 * 512 + 256) * 2 * 512 * 4096"));
  EXPECT_THAT(text, testing::HasSubstr("2 * 256 * 4096 * 126464"));
  EXPECT_THAT(text, testing::HasSubstr("together"));
}

}  // namespace
}  // namespace sinkscope
