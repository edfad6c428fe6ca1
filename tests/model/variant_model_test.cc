// What a model of another attention refuses.
#include "support/variant_model.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/small_model.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using testing::usage_error_of;
using testing::variant_checkpoint;

TEST(VariantModel, Has8BitWeightsOnlyWhereItHasKernels) {
  TransformerOptions options;
  options.weights = WeightFormat::int8;
  for (const AttentionVariant& variant :
       {AttentionVariant{.similarity = Similarity::sigmoid}, AttentionVariant{.post_norm = true}})
    EXPECT_THAT(usage_error_of([&] { Transformer(variant_checkpoint("llada-tiny", variant), options); }),
                HasSubstr("there are none for this model's variant of attention; use --device cpu or"));
}

TEST(VariantModel, EndsWhereItsLearntPositionsDo) {
  const auto forward = [](const AttentionVariant& variant, std::size_t length) {
    const Transformer model(variant_checkpoint("llada-tiny", variant), {});
    const std::vector<std::int32_t> row(length, 5);
    return usage_error_of([&] { model.forward({.tokens = testing::batch_of({{1, 2}, row})}); });
  };
  const AttentionVariant learned{.positions = PositionEncoding::learned};
  const AttentionVariant behind_sink{.slot = KeySlot::sink_token, .positions = PositionEncoding::learned};
  EXPECT_EQ(forward(learned, 16), "(no UsageError)");
  EXPECT_EQ(forward(learned, 17), "sequence 1 has 17 positions, the model has learnt 16");
  EXPECT_EQ(forward(behind_sink, 15), "(no UsageError)");
  EXPECT_EQ(forward(behind_sink, 16), "sequence 1 has 16 positions, the model has learnt 15");
  EXPECT_EQ(forward({.positions = PositionEncoding::sinusoid}, 30), "(no UsageError)");
}

// Products, norms and the stream are bfloat16; similarities and rows are float32 whatever the storage.
TEST(VariantModel, InBfloat16StaysInReachOfFloat32) {
  using enum PositionEncoding;
  for (const char* shape : {"llada-tiny", "llama-tiny"})
    for (const AttentionVariant& variant :
         {AttentionVariant{.slot = KeySlot::sink_token, .value_bias = true, .positions = sinusoid},
          AttentionVariant{.similarity = Similarity::mlp_kernel, .slot = KeySlot::key_value_bias},
          AttentionVariant{.slot = KeySlot::key_bias, .slot_dims = 3, .positions = alibi},
          AttentionVariant{.similarity = Similarity::sigmoid, .positions = relative, .post_norm = true},
          AttentionVariant{.slot = KeySlot::sink_token, .positions = learned, .post_norm = true}}) {
      const auto checkpoint = variant_checkpoint(shape, variant);
      TransformerOptions options;
      options.dtype = at::kBFloat16;
      const TokenBatch batch = testing::batch_of({{1, 2, 3, 4, 5, 6, 7}, {8}});
      const at::Tensor exact = Transformer(checkpoint, {}).forward({.tokens = batch}).logits;
      const at::Tensor rough = Transformer(checkpoint, options).forward({.tokens = batch}).logits;
      EXPECT_EQ(rough.scalar_type(), at::kBFloat16);
      EXPECT_LT(((rough.to(at::kFloat) - exact).norm() / exact.norm()).item<double>(), 0.02);
    }
}

}  // namespace
}  // namespace sinkscope
