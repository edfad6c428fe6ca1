#include "ops/differentiable/matrix_product.h"

#include <dnnl.h>
#include <omp.h>

#include <cstddef>
#include <dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "ops/aligned_buffer.h"
#include "ops/cpu_kernels.h"
#include "ops/product.h"

namespace sinkscope {
namespace {

using dnnl::memory;

// Never destroyed: the threads' own products are, when the threads end, and that may be after static objects.
const dnnl::engine& cpu_engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
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
  bool operator==(const Plan&) const = default;
};

struct PlanHash {
  std::size_t operator()(const Plan& plan) const {
    std::size_t hash = plan.accumulate ? 1 : 0;
    for (const std::int64_t part :
         {plan.rows, plan.columns, plan.inner, plan.a_stride, plan.b_stride, plan.c_stride,
          static_cast<std::int64_t>(plan.a_transposed), static_cast<std::int64_t>(plan.b_transposed)})
      hash = hash * 1000003 + static_cast<std::size_t>(part);
    return hash;
  }
};

memory::desc description(std::int64_t rows, std::int64_t columns, std::int64_t stride, bool is_transposed) {
  return {{rows, columns},
          memory::data_type::bf16,
          is_transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

// The scratchpad is the caller's, as in ops/product.cc.
dnnl::matmul::primitive_desc describe(const Plan& plan) {
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
  return {cpu_engine(), a, b, c, attributes};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, cpu_engine()};
#endif
}

// A plan and the arguments it is called with; only their addresses change from call to call. A thread has its
// own, which saves a microsecond of ten in the small products of attention.
class Product {
 public:
  explicit Product(const dnnl::matmul::primitive_desc& made)
      : primitive_(made),
        a_(made.src_desc(), cpu_engine(), nullptr),
        b_(made.weights_desc(), cpu_engine(), nullptr),
        c_(made.dst_desc(), cpu_engine(), nullptr),
        scratchpad_(made.scratchpad_desc(), cpu_engine(), nullptr),
        scratch_bytes_(made.scratchpad_desc().get_size()),
        arguments_{{DNNL_ARG_SRC, a_},
                   {DNNL_ARG_WEIGHTS, b_},
                   {DNNL_ARG_DST, c_},
                   {DNNL_ARG_SCRATCHPAD, scratchpad_}} {}

  void run(const Bfloat16* a, const Bfloat16* b, float* c, AlignedBuffer& scratch) {
    a_.set_data_handle(const_cast<Bfloat16*>(a));
    b_.set_data_handle(const_cast<Bfloat16*>(b));
    c_.set_data_handle(c);
    if (scratch_bytes_ > 0) scratchpad_.set_data_handle(scratch.get<std::byte>(scratch_bytes_));
    primitive_.execute(thread_stream(), arguments_);
    thread_stream().wait();
  }

 private:
  dnnl::matmul primitive_;
  memory a_, b_, c_, scratchpad_;
  std::size_t scratch_bytes_;
  std::unordered_map<int, memory> arguments_;
};

Product& product(const Plan& plan) {
  thread_local std::unordered_map<Plan, Product, PlanHash> products;
  const auto found = products.find(plan);
  if (found != products.end()) return found->second;
  // oneDNN keeps the code it generates for all threads; making the object again is quick.
  return products.try_emplace(plan, describe(plan)).first->second;
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
  thread_local AlignedBuffer scratch;
  product({size.rows, size.columns, size.inner, a.stride, b.stride, c_stride, a.transposed, b.transposed,
           accumulate})
      .run(a.data, b.data, c, scratch);
}

}  // namespace sinkscope
