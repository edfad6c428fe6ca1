#include "ops/ceiling.h"

#include <gtest/gtest.h>

#include "ops/linear.h"

namespace sinkscope {
namespace {

TEST(Ceiling, MultipliesEveryLayerAndTheHeadOnce) {
  // sizes that no layout divides, a rectangular weight and its transpose
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    ProductCeiling ceiling(dtype, 7, {{33, 17}, {17, 33}}, 3, {65, 17});
    EXPECT_EQ(ceiling.flops(), 2.0 * 7 * (3 * 2 * 33 * 17 + 65 * 17));
    for (int i = 0; i < 3; ++i) ceiling.run();
  }
}

TEST(Ceiling, IsThatOfWhatTheProcessorMultiplies) {
  EXPECT_EQ(ProductCeiling(at::kFloat, 1, {}, 1, {8, 8}).dtype(), at::kFloat);
  EXPECT_EQ(ProductCeiling(at::kBFloat16, 1, {}, 1, {8, 8}).dtype(),
            has_bfloat16_products() ? at::kBFloat16 : at::kFloat);
}

}  // namespace
}  // namespace sinkscope
