#include "ops/few_rows_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/cpu_kernels.h"

namespace sinkscope {
namespace {

// weight [panels * 64, inner] -> [panel][inner / 2][64][2]
at::Tensor in_panels(const at::Tensor& weight) {
  const std::int64_t panels = weight.size(0) / few_rows_panel, pairs = weight.size(1) / 2;
  return weight.view({panels, few_rows_panel, pairs, 2}).permute({0, 2, 1, 3}).contiguous();
}

TEST(MultiplyFewRows, EveryLevelEqualsFloat64) {
  for (const std::int64_t inner : {2, 32, 96})
    for (const std::int64_t panels : {1, 3})
      for (std::int64_t rows = 1; rows <= most_few_rows; ++rows) {
        const at::Tensor x = at::randn({rows, inner}).to(at::kBFloat16);
        const at::Tensor weight = at::randn({panels * few_rows_panel, inner}).to(at::kBFloat16);
        const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
        // Room behind the weight: nothing may be read there, but it may be fetched ahead.
        const at::Tensor packed = in_panels(weight);
        for (const CpuKernels* kernels : available_cpu_kernels()) {
          const at::Tensor sums = at::empty({rows, panels * few_rows_panel});
          kernels->multiply_few_rows(static_cast<const Bfloat16*>(x.data_ptr()), rows, inner,
                                     static_cast<const Bfloat16*>(packed.data_ptr()), panels,
                                     sums.data_ptr<float>());
          EXPECT_TRUE(at::allclose(sums.to(at::kDouble), exact, 1e-5, 1e-4)) << kernels->name << " " << inner;
        }
      }
}

}  // namespace
}  // namespace sinkscope
