#include "ops/product.h"

#include <omp.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "ops/aligned_buffer.h"

namespace sinkscope {
namespace {

using dnnl::memory;

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

struct Product {
  dnnl::matmul primitive;
  memory::desc a;
  memory::desc b;
  memory::desc c;
  std::size_t scratchpad_bytes;
};

// oneDNN plans for the threads it sees; ours is to be a plan for one, whoever asks first.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// The scratchpad is the caller's: the library's own belongs to the thread that made the primitive.
dnnl::matmul::primitive_desc describe(const ProductShape& shape, const memory::desc& b) {
  const OneThread plan_for_one_thread;
  const OperandTypes types = operand_types(shape.type);
  const memory::desc a({shape.rows, shape.inner}, types.a, memory::format_tag::ab);
  const memory::desc c({shape.rows, shape.columns}, types.c, memory::dims{shape.result_stride, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, b, c, attributes};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, cpu_engine()};
#endif
}

memory::desc transposed_plain(ProductType type, std::int64_t columns, std::int64_t inner) {
  return {{inner, columns}, operand_types(type).b, memory::format_tag::ba};
}

const Product& product(const ProductShape& shape) {
  static std::mutex mutex;
  static std::map<ProductShape, std::unique_ptr<const Product>> products;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Product>& entry = products[shape];
  if (!entry) {
    const auto description = describe(
        shape, shape.plain_weight ? transposed_plain(shape.type, shape.columns, shape.inner)
                                  : weight_layout(shape.type, shape.columns, shape.inner).description);
    entry = std::make_unique<const Product>(Product{dnnl::matmul(description), description.src_desc(),
                                                    description.weights_desc(), description.dst_desc(),
                                                    description.scratchpad_desc().get_size()});
  }
  return *entry;
}

bool runs(dnnl::cpu_isa wanted) {
  const auto needed = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

}  // namespace

OperandTypes operand_types(ProductType type) {
  using dt = memory::data_type;
  switch (type) {
    case ProductType::bf16:
      return {dt::bf16, dt::bf16, dt::bf16};
    case ProductType::int8:
      return {dt::u8, dt::s8, dt::s32};
    default:
      return {dt::f32, dt::f32, dt::f32};
  }
}

bool has_bfloat16_products() { return runs(dnnl::cpu_isa::avx512_core_bf16); }

bool has_exact_int8_products() { return runs(dnnl::cpu_isa::avx512_core_vnni); }

const WeightLayout& weight_layout(ProductType type, std::int64_t columns, std::int64_t inner) {
  static std::mutex mutex;
  static std::map<std::tuple<ProductType, std::int64_t, std::int64_t>, WeightLayout> layouts;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = layouts.try_emplace({type, columns, inner});
  if (is_new) {
    // Asked at a typical number of rows; the answer is then given to the products of every other number.
    constexpr std::int64_t typical_rows = 512;
    const memory::data_type stored_type = operand_types(type).b;
    const memory::desc any({inner, columns}, stored_type, memory::format_tag::any);
    const memory::desc wanted = describe({type, typical_rows, columns, inner, columns}, any).weights_desc();
    const memory::desc plain({inner, columns}, stored_type, memory::format_tag::ab);
    const memory::desc stored = transposed_plain(type, columns, inner);
    // A plain answer means that the implementation packs as it goes and takes either order.
    const memory::desc pairs({inner, columns}, stored_type, memory::format_tag::BA16a64b2a);
    entry->second =
        wanted == plain || wanted == stored
            ? WeightLayout{stored, true}
            : WeightLayout{wanted, false, type == ProductType::bf16 && wanted == pairs && inner % 32 == 0};
  }
  return entry->second;
}

void pack_weight(const void* weight, ProductType type, std::int64_t columns, std::int64_t inner,
                 void* packed_weight) {
  memory source(transposed_plain(type, columns, inner), cpu_engine(), const_cast<void*>(weight));
  memory packed(weight_layout(type, columns, inner).description, cpu_engine(), packed_weight);
  dnnl::reorder(source, packed).execute(thread_stream(), source, packed);
  thread_stream().wait();
}

void multiply(const ProductShape& shape, const void* a, const void* b, void* c) {
  const Product& p = product(shape);
  const auto view = [](const memory::desc& description, const void* data) {
    return memory(description, cpu_engine(), const_cast<void*>(data));
  };
  const memory::desc scratchpad({static_cast<memory::dim>(p.scratchpad_bytes)}, memory::data_type::u8,
                                memory::format_tag::a);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, view(p.a, a)}, {DNNL_ARG_WEIGHTS, view(p.b, b)}, {DNNL_ARG_DST, view(p.c, c)}};
  thread_local AlignedBuffer scratch;
  if (p.scratchpad_bytes > 0)
    arguments.emplace(DNNL_ARG_SCRATCHPAD, view(scratchpad, scratch.get<std::byte>(p.scratchpad_bytes)));
  p.primitive.execute(thread_stream(), arguments);
  thread_stream().wait();
}

}  // namespace sinkscope
