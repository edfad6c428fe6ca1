// Matrices of numbers and their pictures: fewer cells by maximum, more by repetition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draw/palette.h"

namespace sinkscope {

/// The largest number that is drawn; beyond it axes have no ticks.
constexpr double largest_drawn = 1e30;

struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> values;  ///< [rows, columns]; NaN: there is no value

  float at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

/// How many source cells a drawn cell stands for along an axis of `cells`, where at most `most` may be drawn;
/// at least 1. The last drawn cell may stand for fewer.
std::size_t pooling_factor(std::size_t cells, std::size_t most);

/// Each cell of the result is the maximum of a block of row_factor x column_factor cells (fewer at the ends),
/// NaN where all of them are: a sink of one cell survives.
Matrix pool_by_maximum(const Matrix& matrix, std::size_t row_factor, std::size_t column_factor);

/// Red, green, blue for each pixel, row by row. Every cell becomes row_scale x column_scale pixels: viewers
/// smooth pictures that they have to enlarge.
std::vector<std::uint8_t> pixels_of(const Matrix& matrix, double from, double to,
                                    const std::vector<Colour>& colours, std::size_t row_scale,
                                    std::size_t column_scale);

/// The largest value that is not NaN; 0 where there is none.
float largest_value(const Matrix& matrix);

}  // namespace sinkscope
