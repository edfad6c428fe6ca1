#include "ops/differentiable/matrix_product.h"

#include <dnnl.h>
#include <omp.h>

#include <compare>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ops/aligned_buffer.h"
#include "ops/cpu_kernels.h"
#include "ops/product.h"

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

// Everything that a plan of oneDNN's depends on.
struct Plan {
  std::int64_t rows, columns, inner, a_stride, b_stride, c_stride;
  bool a_transposed, b_transposed, accumulate;
  auto operator<=>(const Plan&) const = default;
};

struct Primitive {
  dnnl::matmul product;
  memory::desc a, b, c, scratchpad;
};

memory::desc description(std::int64_t rows, std::int64_t columns, std::int64_t stride, bool is_transposed) {
  return {{rows, columns},
          memory::data_type::bf16,
          is_transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

// The scratchpad is the caller's, as in ops/product.cc. Primitives are made and run where OpenMP has one
// thread: inside parallel_for, or under OneThread.
std::unique_ptr<const Primitive> make_primitive(const Plan& plan) {
  const memory::desc a = description(plan.rows, plan.inner, plan.a_stride, plan.a_transposed);
  const memory::desc b = description(plan.inner, plan.columns, plan.b_stride, plan.b_transposed);
  const memory::desc c({plan.rows, plan.columns}, memory::data_type::f32, memory::dims{plan.c_stride, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (plan.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc made(cpu_engine(), a, b, c, attributes);
#else
  const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c), attributes, cpu_engine());
#endif
  return std::make_unique<const Primitive>(Primitive{dnnl::matmul(made), a, b, c, made.scratchpad_desc()});
}

const Primitive& primitive(const Plan& plan) {
  static std::mutex mutex;
  static std::map<Plan, std::unique_ptr<const Primitive>> primitives;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Primitive>& entry = primitives[plan];
  if (!entry) entry = make_primitive(plan);
  return *entry;
}

// oneDNN plans and cuts for the threads it sees; the bits shall be those of one.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// C where there is nothing to add up.
bool is_empty(ProductSize size, float* c, std::int64_t c_stride, bool accumulate) {
  if (size.rows == 0 || size.columns == 0) return true;
  if (size.inner > 0) return false;
  for (std::int64_t row = 0; row < size.rows && !accumulate; ++row)
    for (std::int64_t column = 0; column < size.columns; ++column) c[row * c_stride + column] = 0;
  return true;
}

// [rows, columns] as float32 without gaps between the rows
Factor<float> widened(std::int64_t rows, std::int64_t columns, Factor<Bfloat16> factor,
                      AlignedBuffer& buffer) {
  if (factor.transposed) std::swap(rows, columns);
  auto* wide = buffer.get<float>(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row)
    cpu_kernels().bf16.widen(factor.data + row * factor.stride, wide + row * columns, columns);
  return {wide, columns, factor.transposed};
}

}  // namespace

void multiply_matrices(ProductSize size, Factor<float> a, Factor<float> b, float* c, std::int64_t c_stride,
                       bool accumulate) {
  if (is_empty(size, c, c_stride, accumulate)) return;
  const OneThread one_thread;
  dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', size.rows, size.columns, size.inner, 1.0F,
             a.data, a.stride, b.data, b.stride, accumulate ? 1.0F : 0.0F, c, c_stride);
}

void multiply_widened(ProductSize size, Factor<Bfloat16> a, Factor<Bfloat16> b, float* c,
                      std::int64_t c_stride, bool accumulate) {
  thread_local AlignedBuffer wide_a, wide_b;
  multiply_matrices(size, widened(size.rows, size.inner, a, wide_a),
                    widened(size.inner, size.columns, b, wide_b), c, c_stride, accumulate);
}

void multiply_matrices(ProductSize size, Factor<Bfloat16> a, Factor<Bfloat16> b, float* c,
                       std::int64_t c_stride, bool accumulate) {
  if (is_empty(size, c, c_stride, accumulate)) return;
  if (!has_bfloat16_products()) {
    multiply_widened(size, a, b, c, c_stride, accumulate);
    return;
  }
  const OneThread one_thread;
  const Primitive& p = primitive({size.rows, size.columns, size.inner, a.stride, b.stride, c_stride,
                                  a.transposed, b.transposed, accumulate});
  const auto view = [](const memory::desc& of, const void* data) {
    return memory(of, cpu_engine(), const_cast<void*>(data));
  };
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, view(p.a, a.data)}, {DNNL_ARG_WEIGHTS, view(p.b, b.data)}, {DNNL_ARG_DST, view(p.c, c)}};
  thread_local AlignedBuffer scratch;
  if (p.scratchpad.get_size() > 0)
    arguments.emplace(DNNL_ARG_SCRATCHPAD,
                      view(p.scratchpad, scratch.get<std::byte>(p.scratchpad.get_size())));
  p.product.execute(thread_stream(), arguments);
  thread_stream().wait();
}

}  // namespace sinkscope
