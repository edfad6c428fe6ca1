#include "ops/product_input.h"

#include <algorithm>
#include <cstring>

#include "ops/aligned_buffer.h"
#include "ops/parallel.h"
#include "ops/product.h"
#include "ops/rms_norm.h"

namespace sinkscope {
namespace {

constexpr std::int64_t rows_per_task = 16;

// Row `row` of the input takes the `width` values of `from`.
template <typename T>
void set_row(const T* from, std::int64_t width, std::int64_t row, int levels, ProductInput& input) {
  const auto& kernels = storage_kernels<T>(cpu_kernels());
  switch (input.form) {
    case InputForm::storage:
      std::memcpy(storage_of<T>(input.values) + row * width, from,
                  static_cast<std::size_t>(width) * sizeof(T));
      return;
    case InputForm::widened:
      kernels.widen(from, input.values.data_ptr<float>() + row * width, width);
      return;
    case InputForm::quantised:
      kernels.quantise(from, width, levels, input.values.data_ptr<std::uint8_t>() + row * width,
                       input.scale.data_ptr<float>() + row, input.zero.data_ptr<std::int32_t>() + row);
      return;
  }
}

}  // namespace

int quantised_levels() { return has_exact_int8_products() ? 255 : 127; }

void prepare_input(Backend backend, const at::Tensor& x, ProductInput& input) {
  if (backend == Backend::aten || input.form == InputForm::storage) {
    input.values = x;
    return;
  }
  const std::int64_t width = x.size(1);
  const int levels = quantised_levels();
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(x.size(0), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        set_row(storage_of<T>(x) + row * width, width, row, levels, input);
    });
  });
}

void prepare_normed(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps,
                    ProductInput& input) {
  if (backend == Backend::aten) {
    input.values = rms_norm(x, weight, eps);
    return;
  }
  const std::int64_t width = x.size(1);
  const int levels = quantised_levels();
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto& kernels = storage_kernels<T>(cpu_kernels());
    parallel_rows(x.size(0), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
      thread_local AlignedBuffer buffer;
      T* normed = buffer.get<T>(static_cast<std::size_t>(width));
      const bool as_is = input.form == InputForm::storage;
      for (std::int64_t row = begin; row < end; ++row) {
        T* to = as_is ? storage_of<T>(input.values) + row * width : normed;
        kernels.rms_norm(storage_of<T>(x) + row * width, storage_of<T>(weight), to, width,
                         static_cast<float>(eps));
        if (!as_is) set_row(normed, width, row, levels, input);
      }
    });
  });
}

}  // namespace sinkscope
