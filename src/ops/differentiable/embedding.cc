#include "ops/differentiable/embedding.h"

#include <ATen/ops/index_select.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "ops/differentiable/factors.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t piece_rows = 64;

void check_ids(const at::Tensor& table, const at::Tensor& ids) {
  TORCH_CHECK(table.dim() == 2 && ids.dim() == 1 && ids.scalar_type() == at::kLong, "embedding: ids ",
              ids.toString(), " ", ids.sizes(), " of a table ", table.sizes());
}

// Where each row of the table is used: places[first[v]] to places[first[v + 1] - 1], ascending.
struct Uses {
  std::vector<std::int64_t> first, places;
};
Uses uses_of(const std::int64_t* ids, std::int64_t count, std::int64_t vocabulary) {
  Uses uses;
  uses.first.resize(static_cast<std::size_t>(vocabulary + 1));
  uses.places.resize(static_cast<std::size_t>(count));
  for (std::int64_t n = 0; n < count; ++n) ++uses.first[ids[n] + 1];
  for (std::int64_t v = 0; v < vocabulary; ++v) uses.first[v + 1] += uses.first[v];
  std::vector<std::int64_t> next(uses.first.begin(), uses.first.end() - 1);
  for (std::int64_t n = 0; n < count; ++n) uses.places[next[ids[n]]++] = n;
  return uses;
}

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& ids) {
    const at::Tensor rows = contiguous_floats(table, "embedding: table"), places = ids.contiguous();
    const std::int64_t width = table.size(1), vocabulary = table.size(0);
    const auto* id = places.data_ptr<std::int64_t>();
    for (std::int64_t n = 0; n < ids.size(0); ++n)
      TORCH_CHECK_INDEX(id[n] >= 0 && id[n] < vocabulary, "embedding: id ", id[n], " of ", vocabulary);
    at::Tensor result = empty_tensor<float>({ids.size(0), width});
    parallel_rows(ids.size(0), piece_rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n)
        std::copy_n(storage_of<float>(rows) + id[n] * width, width, storage_of<float>(result) + n * width);
    });
    context->save_for_backward({places});
    context->saved_data["vocabulary"] = vocabulary;
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const at::Tensor ids = context->get_saved_variables()[0];
    const at::Tensor dy = contiguous_floats(gradient[0], "embedding: gradient");
    const std::int64_t vocabulary = context->saved_data["vocabulary"].toInt(), width = dy.size(1);
    const Uses uses = uses_of(ids.data_ptr<std::int64_t>(), ids.size(0), vocabulary);
    at::Tensor table_gradient = empty_tensor<float>({vocabulary, width});
    parallel_rows(vocabulary, piece_rows, [&](std::int64_t begin, std::int64_t end) {
      float* sums = storage_of<float>(table_gradient);
      std::fill(sums + begin * width, sums + end * width, 0.0F);
      for (std::int64_t v = begin; v < end; ++v)
        for (std::int64_t use = uses.first[v]; use < uses.first[v + 1]; ++use)
          cpu_kernels().f32.add(sums + v * width, storage_of<float>(dy) + uses.places[use] * width, width);
    });
    return {table_gradient, {}};
  }
};

}  // namespace

at::Tensor embedding(Backend backend, const at::Tensor& table, const at::Tensor& ids) {
  check_ids(table, ids);
  return backend == Backend::cpu ? EmbeddingFunction::apply(table, ids)
                                 : at::index_select(table, 0, ids.to(table.device()));
}

}  // namespace sinkscope
