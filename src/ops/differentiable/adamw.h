// The optimiser's side of a training step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "ops/backend.h"

namespace sinkscope {

/// Four tensors of one shape, float32; the gradient may be undefined, which leaves the others as they are.
struct AdamwParameter {
  at::Tensor parameter;
  at::Tensor gradient;
  at::Tensor first_moment;   // m
  at::Tensor second_moment;  // v
  double weight_decay = 0;
};

struct AdamwOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  std::int64_t step = 1;      // t, from 1 on
  double gradient_scale = 1;  // g is the gradient times this: what clipping_scale() says
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// p = p (1 - lr decay) - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps), in place, as
/// torch.optim.AdamW.
void adamw_step(Backend backend, std::span<const AdamwParameter> parameters, const AdamwOptions& options);

/// L2 norm of all gradients together, summed in float64; undefined ones are passed over.
double gradient_norm(Backend backend, at::TensorList gradients);

/// The factor that brings gradients of that norm down to `largest`: min(1, largest / (norm + 1e-6)).
double clipping_scale(double norm, double largest);

}  // namespace sinkscope
