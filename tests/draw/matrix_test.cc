// Matrices as pictures.
#include "draw/matrix.h"

#include <gmock/gmock.h>

#include <cmath>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

TEST(Matrix, ASinkOfOneCellSurvivesPooling) {
  Matrix matrix{300, 4096, std::vector<float>(300 * 4096, 0.5F)};
  matrix.values[123 * 4096 + 3001] = 40;
  const std::size_t rows = pooling_factor(300, 100), columns = pooling_factor(4096, 700);
  EXPECT_EQ(rows, 3U);
  EXPECT_EQ(columns, 6U);
  const Matrix pooled = pool_by_maximum(matrix, rows, columns);
  EXPECT_EQ(pooled.rows, 100U);
  EXPECT_EQ(pooled.columns, 683U);
  EXPECT_EQ(pooled.at(123 / 3, 3001 / 6), 40);
  EXPECT_EQ(std::count(pooled.values.begin(), pooled.values.end(), 40.0F), 1);
}

TEST(Matrix, ABlockWithoutAValueHasNone) {
  const float none = std::nanf("");
  const Matrix pooled = pool_by_maximum({1, 5, {none, none, none, -2, none}}, 1, 2);
  ASSERT_EQ(pooled.columns, 3U);
  EXPECT_TRUE(std::isnan(pooled.values[0]));
  EXPECT_EQ(pooled.values[1], -2);
  EXPECT_TRUE(std::isnan(pooled.values[2]));
  EXPECT_EQ(largest_value(pooled), -2);
  EXPECT_EQ(largest_value({1, 1, {none}}), 0);
}

TEST(Matrix, FactorsLeaveRoomForAll) {
  EXPECT_EQ(pooling_factor(10, 10), 1U);
  EXPECT_EQ(pooling_factor(11, 10), 2U);
  EXPECT_EQ(pooling_factor(5, 0), 1U);
}

TEST(Matrix, CellsBecomeBlocksOfPixels) {
  const std::vector<Colour> colours{{1, 2, 3}, {4, 5, 6}};
  EXPECT_THAT(pixels_of({1, 2, {0, 1}}, 0, 1, colours, 2, 1),
              ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(pixels_of({2, 1, {0, 1}}, 0, 1, colours, 1, 2),
              ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
}

}  // namespace
}  // namespace sinkscope
