#include "ops/ceiling.h"

#include <gtest/gtest.h>

#include "ops/linear.h"

namespace sinkscope {
namespace {

std::vector<ProductType> types_here() {
  std::vector<ProductType> types{ProductType::f32, ProductType::int8};
  if (has_bfloat16_products()) types.push_back(ProductType::bf16);
  return types;
}

TEST(Ceiling, MultipliesEveryLayerAndTheHeadOnce) {
  // sizes that no layout divides, a rectangular weight and its transpose
  for (const ProductType type : types_here()) {
    ProductCeiling ceiling(type, 7, {{33, 17}, {17, 33}}, 3, {65, 17});
    EXPECT_EQ(ceiling.type(), type);
    EXPECT_EQ(ceiling.flops(), 2.0 * 7 * (3 * 2 * 33 * 17 + 65 * 17));
    for (int i = 0; i < 3; ++i) ceiling.run();
  }
}

TEST(ProductType, IsWhatTheProcessorMultiplies) {
  EXPECT_EQ(product_type(at::kFloat, false), ProductType::f32);
  EXPECT_EQ(product_type(at::kFloat, true), ProductType::int8);
  EXPECT_EQ(product_type(at::kBFloat16, false),
            has_bfloat16_products() ? ProductType::bf16 : ProductType::f32);
}

}  // namespace
}  // namespace sinkscope
