#include "ops/ceiling.h"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <unordered_map>
#include <utility>

#include "ops/parallel.h"

namespace sinkscope {
namespace {

using dnnl::memory;

// A last-level cache is smaller. Of a model that is smaller itself every layer has its own copy: it, too,
// multiplies out of the cache.
constexpr std::int64_t bytes_beyond_caches = std::int64_t{256} << 20;

// x and y are shared by all products of the same shape, W is a copy's own.
struct PackedProduct {
  dnnl::matmul primitive;
  std::unordered_map<int, memory> arguments;
};

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, ProductType type, std::int64_t rows,
                                      WeightSize weight) {
  const OperandTypes types = operand_types(type);
  const memory::desc x({rows, weight.in}, types.a, memory::format_tag::ab);
  const memory::desc w({weight.in, weight.out}, types.b, memory::format_tag::any);
  const memory::desc y({rows, weight.out}, types.c, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, x, w, y};
#else
  return {dnnl::matmul::desc(x, w, y), engine};
#endif
}

// Numbers in [1, 2) or (-2, -1]: ordinary ones in either floating type, whatever place the layout gives them.
void fill(memory& target, ProductType type) {
  auto* bytes = static_cast<std::byte*>(target.get_data_handle());
  const std::size_t size = target.get_desc().get_size();
  std::vector<std::uint32_t> pattern(std::size_t{1} << 16);
  std::uint32_t state = 1;
  for (std::uint32_t& word : pattern) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    word = type == ProductType::bf16 ? (state & 0x807f807f) | 0x3f803f80 : (state & 0x807fffff) | 0x3f800000;
  }
  const std::size_t length = pattern.size() * sizeof pattern[0];
  for (std::size_t at = 0; at < size; at += length)
    std::memcpy(bytes + at, pattern.data(), std::min(length, size - at));
}

}  // namespace

struct ProductCeiling::Products {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  ProductType type = ProductType::f32;
  std::int64_t rows = 0;
  std::int64_t layers = 0;
  std::vector<std::vector<PackedProduct>> copies;  // of a layer
  std::vector<PackedProduct> head;
  double flops = 0;
  std::map<std::int64_t, memory> sources;       // x by its columns
  std::map<std::int64_t, memory> destinations;  // y by its columns

  memory& shared(std::map<std::int64_t, memory>& memories, const memory::desc& description,
                 std::int64_t columns) {
    const auto [entry, is_new] = memories.try_emplace(columns);
    if (is_new) {
      entry->second = memory(description, engine);
      fill(entry->second, type);
    }
    return entry->second;
  }

  PackedProduct pack(WeightSize size) {
    const auto description = describe(engine, type, rows, size);
    memory weight(description.weights_desc(), engine);
    fill(weight, type);
    return {dnnl::matmul(description),
            {{DNNL_ARG_SRC, shared(sources, description.src_desc(), size.in)},
             {DNNL_ARG_WEIGHTS, weight},
             {DNNL_ARG_DST, shared(destinations, description.dst_desc(), size.out)}}};
  }

  void run(std::vector<PackedProduct>& products) {
    for (PackedProduct& product : products) product.primitive.execute(stream, product.arguments);
  }
};

namespace {

// oneDNN's own threads are OpenMP's: as many as ours, for the time of this object.
class OwnThreads {
 public:
  OwnThreads() : before_(omp_get_max_threads()) { omp_set_num_threads(thread_count()); }
  ~OwnThreads() { omp_set_num_threads(before_); }
  OwnThreads(const OwnThreads&) = delete;
  OwnThreads& operator=(const OwnThreads&) = delete;

 private:
  int before_;
};

}  // namespace

ProductCeiling::ProductCeiling(ProductType type, std::int64_t rows, const std::vector<WeightSize>& layer,
                               std::int64_t layers, WeightSize head)
    : products_(std::make_unique<Products>()) {
  const OwnThreads threads;  // oneDNN plans for as many as it sees
  Products& p = *products_;
  p.type = type;
  p.rows = rows;
  p.layers = layers;
  std::int64_t layer_elements = 0;
  for (const WeightSize& size : layer) layer_elements += size.out * size.in;
  const std::int64_t layer_bytes = std::max<std::int64_t>(
      1, layer_elements * static_cast<std::int64_t>(memory::data_type_size(operand_types(type).b)));
  const std::int64_t copies = std::min(layers, (bytes_beyond_caches + layer_bytes - 1) / layer_bytes);
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    p.copies.emplace_back();
    for (const WeightSize& size : layer) p.copies.back().push_back(p.pack(size));
  }
  p.head.push_back(p.pack(head));
  p.flops = 2.0 * static_cast<double>(rows) *
            (static_cast<double>(layers) * static_cast<double>(layer_elements) +
             static_cast<double>(head.out) * static_cast<double>(head.in));
}

ProductCeiling::~ProductCeiling() = default;

void ProductCeiling::run() {
  const OwnThreads threads;
  Products& p = *products_;
  for (std::int64_t layer = 0; layer < p.layers; ++layer)
    p.run(p.copies[static_cast<std::size_t>(layer) % p.copies.size()]);
  p.run(p.head);
  p.stream.wait();
}

double ProductCeiling::flops() const { return products_->flops; }

ProductType ProductCeiling::type() const { return products_->type; }

}  // namespace sinkscope
