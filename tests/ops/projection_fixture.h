// Inputs and results for products, as a forward pass would make them.
#pragma once

#include <ATen/ATen.h>

#include "ops/linear.h"

namespace sinkscope::testing {

inline at::Tensor room_for(const Linear& linear, std::int64_t rows) {
  return at::empty({rows, linear.out_features()}, at::TensorOptions(linear.dtype()));
}

inline ProductInput empty_input(const Linear& linear, std::int64_t rows) {
  ProductInput input;
  input.form = linear.input_form();
  const at::ScalarType type = input.form == InputForm::storage   ? linear.dtype()
                              : input.form == InputForm::widened ? at::kFloat
                                                                 : at::kByte;
  input.values = at::empty({rows, linear.in_features()}, at::TensorOptions(type));
  input.scale = at::empty({rows}, at::TensorOptions(at::kFloat));
  input.zero = at::empty({rows}, at::TensorOptions(at::kInt));
  return input;
}

inline ProductInput input_for(const Linear& linear, const at::Tensor& x) {
  ProductInput input = empty_input(linear, x.size(0));
  prepare_input(linear.backend(), x, input);
  return input;
}

}  // namespace sinkscope::testing
