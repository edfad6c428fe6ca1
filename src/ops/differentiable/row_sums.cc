#include "ops/differentiable/row_sums.h"

#include <ATen/ops/zeros.h>

#include "ops/backend.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr std::int64_t piece_rows = 256;

void add_rows(const float* from, std::int64_t rows, std::int64_t width, float* to) {
  for (std::int64_t row = 0; row < rows; ++row) cpu_kernels().f32.add(to, from + row * width, width);
}

}  // namespace

at::Tensor sum_of_rows(const at::Tensor& x, std::int64_t rows, std::int64_t width) {
  const std::int64_t pieces = (rows + piece_rows - 1) / piece_rows;
  const at::TensorOptions floats(at::kFloat);
  const at::Tensor partial = at::zeros({pieces, width}, floats);
  parallel_rows(rows, piece_rows, [&](std::int64_t begin, std::int64_t end) {
    add_rows(storage_of<float>(x) + begin * width, end - begin, width,
             storage_of<float>(partial) + begin / piece_rows * width);
  });
  at::Tensor sum = at::zeros({width}, floats);
  add_rows(storage_of<float>(partial), pieces, width, storage_of<float>(sum));
  return sum;
}

}  // namespace sinkscope
