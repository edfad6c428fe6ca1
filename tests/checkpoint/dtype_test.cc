#include <gtest/gtest.h>
#include <sinkscope/dtype.h>

namespace sinkscope {
namespace {

TEST(DTypeTest, NamesLeadBackToTheirTypes) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                            DType::i16, DType::i8, DType::u8, DType::boolean})
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
}

TEST(DTypeTest, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(dtype_size(DType::f64), 8u);
  EXPECT_EQ(dtype_size(DType::bf16), 2u);
  EXPECT_EQ(dtype_size(DType::boolean), 1u);
  EXPECT_EQ(dtype_name(DType::boolean), "BOOL");
}

TEST(DTypeTest, OtherNamesAreNone) {
  EXPECT_EQ(dtype_from_name("F8_E4M3"), std::nullopt);
  EXPECT_EQ(dtype_from_name("f32"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

}  // namespace
}  // namespace sinkscope
