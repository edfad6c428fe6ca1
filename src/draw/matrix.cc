#include "draw/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkscope {

std::size_t pooling_factor(std::size_t cells, std::size_t most) {
  if (most == 0 || cells <= most) return 1;
  return (cells + most - 1) / most;
}

Matrix pool_by_maximum(const Matrix& matrix, std::size_t row_factor, std::size_t column_factor) {
  Matrix pooled{
      (matrix.rows + row_factor - 1) / row_factor, (matrix.columns + column_factor - 1) / column_factor, {}};
  pooled.values.assign(pooled.rows * pooled.columns, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t row = 0; row < matrix.rows; ++row)
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      float& cell = pooled.values[row / row_factor * pooled.columns + column / column_factor];
      const float value = matrix.at(row, column);
      if (std::isnan(cell) || value > cell) cell = value;
    }
  return pooled;
}

std::vector<std::uint8_t> pixels_of(const Matrix& matrix, double from, double to,
                                    const std::vector<Colour>& colours, std::size_t row_scale,
                                    std::size_t column_scale) {
  std::vector<std::uint8_t> pixels;
  const std::size_t width = 3 * matrix.columns * column_scale;
  pixels.reserve(width * matrix.rows * row_scale);
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    const std::size_t begin = pixels.size();
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      const Colour colour = colour_of(matrix.at(row, column), from, to, colours);
      for (std::size_t i = 0; i < column_scale; ++i)
        pixels.insert(pixels.end(), colour.begin(), colour.end());
    }
    for (std::size_t i = 1; i < row_scale; ++i) {
      pixels.resize(pixels.size() + width);
      std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(begin), width,
                  pixels.end() - static_cast<std::ptrdiff_t>(width));
    }
  }
  return pixels;
}

float largest_value(const Matrix& matrix) {
  float largest = std::numeric_limits<float>::lowest();
  for (const float value : matrix.values)
    if (value > largest) largest = value;
  return largest == std::numeric_limits<float>::lowest() ? 0 : largest;
}

}  // namespace sinkscope
