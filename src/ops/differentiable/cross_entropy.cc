#include "ops/differentiable/cross_entropy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "ops/aligned_buffer.h"
#include "ops/differentiable/factors.h"
#include "ops/differentiable/linear.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t most_logits = std::int64_t{1} << 24;  // of a chunk
constexpr std::int64_t most_rows = 1024;
// A chunk is filled up to a multiple of these with rows that weigh nothing, so that the sizes of products
// repeat though the number of masked positions never does.
constexpr std::int64_t row_tile = 64;
constexpr std::int64_t logit_tile = 512;  // columns of the vocabulary that one thread takes
constexpr std::int64_t width_tile = 256;

std::int64_t rows_of_a_chunk(std::int64_t vocabulary) {
  return std::clamp(most_logits / vocabulary / row_tile * row_tile, row_tile, most_rows);
}

struct Wanted {
  bool hidden, head;
  bool any() const { return hidden || head; }
};

// The whole problem: what is read and what is made. T: float or Bfloat16.
template <typename T>
struct Work {
  std::int64_t width, vocabulary;
  const float* hidden;  // [N, W]
  const T* head;        // [V, W]
  const std::int64_t* rows;
  const std::int64_t* targets;
  const float* weights;
  float* losses;           // [R]
  float* hidden_gradient;  // [N, W] or null
  float* head_gradient;    // [V, W] or null

  bool wants_gradients() const { return hidden_gradient != nullptr || head_gradient != nullptr; }
};

// Some of the listed rows: [begin, end), filled up to `padded`.
struct Chunk {
  std::int64_t begin, end, padded;
};

// Their memory, one after the other for all chunks.
template <typename T>
struct ChunkMemory {
  T* hidden;             // [padded, W]
  float* logits;         // [padded, V]
  T* gradients;          // [padded, V], dl
  float* hidden_result;  // [padded, W]
};

template <typename T>
void gather(const Work<T>& work, const Chunk& chunk, const ChunkMemory<T>& memory) {
  const std::int64_t width = work.width;
  parallel_rows(chunk.padded, row_tile, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* to = memory.hidden + i * width;
      if (chunk.begin + i < chunk.end)
        factor_kernels<T>(training_kernels())
            .convert(work.hidden + work.rows[chunk.begin + i] * width, to, width);
      else
        std::fill(to, to + width, T{});
    }
  });
}

template <typename T>
void compute_logits(const Work<T>& work, const Chunk& chunk, const ChunkMemory<T>& memory) {
  parallel_rows(work.vocabulary, logit_tile, [&](std::int64_t begin, std::int64_t end) {
    multiply_matrices({chunk.padded, end - begin, work.width}, Factor<T>{memory.hidden, work.width},
                      transposed(work.head + begin * work.width, work.width), memory.logits + begin,
                      work.vocabulary);
  });
}

// Row i of the list from its logits, which become e^(l - max): its loss and, where wanted, dl.
template <typename T>
void finish_row(const Work<T>& work, std::int64_t i, float* logits, T* gradient) {
  const TrainingKernels& kernels = training_kernels();
  const float max = kernels.maximum(logits, work.vocabulary);
  const float target = logits[work.targets[i]];
  const float sum = kernels.f32.exponentials(logits, max, 1.0F, logits, work.vocabulary);
  work.losses[i] = std::log(sum) + (max - target);
  if (!work.wants_gradients()) return;
  const float factor = work.weights[i] / sum;
  float& of_target = logits[work.targets[i]];
  of_target -= sum;  // p - 1 once it is multiplied
  factor_kernels<T>(kernels).scale(logits, factor, gradient, work.vocabulary);
}

template <typename T>
void finish_rows(const Work<T>& work, const Chunk& chunk, const ChunkMemory<T>& memory) {
  constexpr std::int64_t rows_of_a_piece = 4;
  parallel_rows(chunk.padded, rows_of_a_piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* gradient = memory.gradients + i * work.vocabulary;
      if (chunk.begin + i < chunk.end)
        finish_row(work, chunk.begin + i, memory.logits + i * work.vocabulary, gradient);
      else if (work.wants_gradients())
        std::fill(gradient, gradient + work.vocabulary, T{});
    }
  });
}

// dhidden += dl head, in squares of rows and width.
template <typename T>
void add_hidden_gradient(const Work<T>& work, const Chunk& chunk, const ChunkMemory<T>& memory) {
  const std::int64_t width = work.width, columns = (width + width_tile - 1) / width_tile;
  parallel_for(chunk.padded / row_tile * columns, [&](std::int64_t piece) {
    const std::int64_t row = piece / columns * row_tile, column = piece % columns * width_tile;
    multiply_matrices({row_tile, std::min(width_tile, width - column), work.vocabulary},
                      Factor<T>{memory.gradients + row * work.vocabulary, work.vocabulary},
                      Factor<T>{work.head + column, width}, memory.hidden_result + row * width + column,
                      width);
  });
  for (std::int64_t i = chunk.begin; i < chunk.end; ++i)
    cpu_kernels().f32.add(work.hidden_gradient + work.rows[i] * width,
                          memory.hidden_result + (i - chunk.begin) * width, width);
}

// dhead += dl^T hidden
template <typename T>
void add_head_gradient(const Work<T>& work, const Chunk& chunk, const ChunkMemory<T>& memory) {
  parallel_rows(work.vocabulary, logit_tile / 2, [&](std::int64_t begin, std::int64_t end) {
    multiply_matrices({end - begin, work.width, chunk.padded},
                      transposed<T>(memory.gradients + begin, work.vocabulary),
                      Factor<T>{memory.hidden, work.width}, work.head_gradient + begin * work.width,
                      work.width, chunk.begin > 0);
  });
}

template <typename T>
void run_chunks(const Work<T>& work, std::int64_t rows) {
  const std::int64_t step =
      std::min(rows_of_a_chunk(work.vocabulary), (rows + row_tile - 1) / row_tile * row_tile);
  AlignedBuffer hidden, logits, gradients, hidden_result;
  const auto size = [&](std::int64_t columns) { return static_cast<std::size_t>(step * columns); };
  ChunkMemory<T> memory{hidden.get<T>(size(work.width)), logits.get<float>(size(work.vocabulary)), nullptr,
                        hidden_result.get<float>(size(work.width))};
  if constexpr (std::is_same_v<T, float>)
    memory.gradients = memory.logits;
  else
    memory.gradients = gradients.get<T>(size(work.vocabulary));
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const std::int64_t end = std::min(begin + step, rows);
    const Chunk chunk{begin, end, (end - begin + row_tile - 1) / row_tile * row_tile};
    gather(work, chunk, memory);
    compute_logits(work, chunk, memory);
    finish_rows(work, chunk, memory);
    if (work.hidden_gradient != nullptr) add_hidden_gradient(work, chunk, memory);
    if (work.head_gradient != nullptr) add_head_gradient(work, chunk, memory);
  }
}

struct Results {
  at::Tensor losses, hidden_gradient, head_gradient;
};

template <typename T>
Results run(const at::Tensor& hidden, const at::Tensor& head, const PredictedRows& predicted, Wanted wanted) {
  const std::int64_t rows = predicted.rows.size(0);
  Results results{empty_tensor<float>({rows}), {}, {}};
  const at::Tensor factor = as_factor<T>(head);
  Work<T> work{head.size(1),
               head.size(0),
               storage_of<float>(hidden),
               storage_of<T>(factor),
               predicted.rows.data_ptr<std::int64_t>(),
               predicted.targets.data_ptr<std::int64_t>(),
               storage_of<float>(predicted.weights),
               storage_of<float>(results.losses),
               nullptr,
               nullptr};
  if (wanted.hidden) {
    results.hidden_gradient = at::zeros(hidden.sizes(), hidden.options());
    work.hidden_gradient = storage_of<float>(results.hidden_gradient);
  }
  if (wanted.head) {
    results.head_gradient =
        rows == 0 ? at::zeros(head.sizes(), head.options()) : empty_tensor<float>(head.sizes());
    work.head_gradient = storage_of<float>(results.head_gradient);
  }
  run_chunks(work, rows);
  return results;
}

at::Tensor weighted_sum(const at::Tensor& losses, const at::Tensor& weights) {
  double sum = 0;
  for (std::int64_t i = 0; i < losses.size(0); ++i)
    sum += static_cast<double>(storage_of<float>(losses)[i]) *
           static_cast<double>(storage_of<float>(weights)[i]);
  return at::scalar_tensor(sum, losses.options());
}

class CrossEntropyFunction : public torch::autograd::Function<CrossEntropyFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const PredictedRows& predicted, ProductPrecision precision, Wanted wanted) {
    const Results results = with_factor(precision, [&](auto* type) {
      return run<std::remove_pointer_t<decltype(type)>>(contiguous_floats(hidden, "cross_entropy: hidden"),
                                                        contiguous_floats(head, "cross_entropy: head"),
                                                        predicted, wanted);
    });
    if (wanted.hidden) context->saved_data["hidden"] = results.hidden_gradient;
    if (wanted.head) context->saved_data["head"] = results.head_gradient;
    context->mark_non_differentiable({results.losses});
    return {weighted_sum(results.losses, predicted.weights), results.losses};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const float factor = contiguous_floats(gradient[0], "cross_entropy: gradient").item<float>();
    return {scaled(context, "hidden", factor), scaled(context, "head", factor), {}, {}, {}};
  }

 private:
  // Handed out as it lies: a vocabulary's gradient is not copied.
  static at::Tensor scaled(AutogradContext* context, const char* name, float factor) {
    const auto found = context->saved_data.find(name);
    if (found == context->saved_data.end()) return {};
    TORCH_CHECK(!found->second.isNone(), "cross_entropy: the backward pass runs once");
    at::Tensor gradient = found->second.toTensor();
    found->second = at::IValue();
    constexpr std::int64_t piece_values = 1 << 16;
    if (factor != 1)
      parallel_rows(gradient.numel(), piece_values, [&](std::int64_t begin, std::int64_t end) {
        float* values = storage_of<float>(gradient) + begin;
        training_kernels().f32.scale(values, factor, values, end - begin);
      });
    return gradient;
  }
};

CrossEntropy cross_entropy_aten(const at::Tensor& hidden, const at::Tensor& head,
                                const PredictedRows& predicted, ProductPrecision precision) {
  const at::Device device = hidden.device();
  const at::Tensor rows = at::index_select(hidden, 0, predicted.rows.to(device));
  const at::Tensor logits = linear(Backend::aten, rows, head, {}, precision);
  const at::Tensor of_target = at::gather(logits, 1, predicted.targets.to(device).unsqueeze(1)).squeeze(1);
  const at::Tensor losses = at::logsumexp(logits, at::IntArrayRef{1}) - of_target;
  return {at::sum(losses * predicted.weights.to(losses.options())), losses.detach()};
}

void check_indices(const at::Tensor& indices, std::int64_t limit, const char* what) {
  for (std::int64_t i = 0; i < indices.size(0); ++i) {
    const std::int64_t index = indices.data_ptr<std::int64_t>()[i];
    TORCH_CHECK_INDEX(index >= 0 && index < limit, "cross_entropy: ", what, " ", index, " of ", limit);
  }
}

void check(const at::Tensor& hidden, const at::Tensor& head, const PredictedRows& predicted) {
  const auto& [rows, targets, weights] = predicted;
  TORCH_CHECK(hidden.dim() == 2 && head.dim() == 2 && hidden.size(1) == head.size(1) && head.size(0) > 0,
              "cross_entropy: hidden ", hidden.sizes(), " and head ", head.sizes());
  TORCH_CHECK(rows.dim() == 1 && rows.sizes() == targets.sizes() && rows.sizes() == weights.sizes() &&
                  rows.scalar_type() == at::kLong && targets.scalar_type() == at::kLong &&
                  weights.scalar_type() == at::kFloat && rows.is_cpu() && targets.is_cpu() &&
                  weights.is_cpu(),
              "cross_entropy: rows ", rows.toString(), rows.sizes(), ", targets ", targets.toString(),
              targets.sizes(), ", weights ", weights.toString(), weights.sizes());
}

}  // namespace

CrossEntropy cross_entropy(Backend backend, const at::Tensor& hidden, const at::Tensor& head,
                           const PredictedRows& predicted, ProductPrecision precision) {
  check(hidden, head, predicted);
  const PredictedRows listed{predicted.rows.contiguous(), predicted.targets.contiguous(),
                             predicted.weights.contiguous()};
  check_indices(listed.rows, hidden.size(0), "row");
  check_indices(listed.targets, head.size(0), "target");
  if (backend == Backend::aten) return cross_entropy_aten(hidden, head, listed, precision);
  const bool recording = at::GradMode::is_enabled();
  const Wanted wanted{recording && hidden.requires_grad(), recording && head.requires_grad()};
  const variable_list results = CrossEntropyFunction::apply(hidden, head, listed, precision, wanted);
  return {results[0], results[1]};
}

}  // namespace sinkscope
