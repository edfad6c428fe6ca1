// Causal and windowed attention, and attention of some queries to kept keys, against a plain one in float64.
#include <ATen/ATen.h>

#include <random>

#include "ops/attention.h"
#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

// One sequence: `keys` keys, of which the last or the middle ones have a query.
struct Piece {
  std::int64_t keys, first_query, queries;
};

struct Case {
  std::vector<Piece> pieces;
  std::int64_t heads, kv_heads, width;
  bool causal;
  std::int64_t window;
  double removed_share;
};

struct Problem {
  at::Tensor q, k, v;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> query_class;
  std::vector<KeyRange> keys;
  std::vector<std::uint8_t> removed;  // [H, K]
  std::int64_t key_count = 0;

  AttentionLayout layout(const Case& c) const { return {offsets, query_class, keys, c.causal, c.window}; }
};

constexpr std::int64_t gap = 3;  // rows between the keys of two sequences, which nobody may read

Problem make_problem(const Case& c, double scale = 1) {
  Problem p;
  std::int64_t row = 0;
  for (const Piece& piece : c.pieces) {
    p.offsets.push_back(p.offsets.back() + piece.queries);
    p.keys.push_back({row, piece.keys, piece.first_query});
    row += piece.keys + gap;
    p.key_count += piece.keys;
  }
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  const at::TensorOptions f32(at::kFloat);
  p.q = at::randn({p.offsets.back(), c.heads, c.width}, generator, f32) * scale;
  p.k = at::randn({row, c.kv_heads, c.width}, generator, f32);
  p.v = at::randn({row, c.kv_heads, c.width}, generator, f32);
  for (const KeyRange& range : p.keys) {
    p.k.narrow(0, range.begin + range.count, gap).fill_(NAN);
    p.v.narrow(0, range.begin + range.count, gap).fill_(NAN);
  }
  std::mt19937 random(7);
  for (std::int64_t i = 0; i < p.offsets.back(); ++i)
    p.query_class.push_back(static_cast<std::uint8_t>(random() % 3));
  std::bernoulli_distribution remove(c.removed_share);
  for (std::int64_t i = 0; i < c.heads * p.key_count; ++i) p.removed.push_back(remove(random) ? 1 : 0);
  return p;
}

struct Expected {
  at::Tensor output, column_sum, column_used, diagonal;
  std::vector<std::int64_t> empty_rows;
};

Expected reference(const Problem& p, const Case& c) {
  const at::TensorOptions f64(at::kDouble);
  Expected e{at::zeros({p.offsets.back(), c.heads * c.width}, f64),
             at::zeros({3, c.heads, p.key_count}, f64),
             at::zeros({c.heads, p.key_count}, f64),
             at::zeros({c.heads, p.key_count}, f64),
             {}};
  std::int64_t first_key = 0;
  for (std::size_t b = 0; b < c.pieces.size(); ++b) {
    const Piece& piece = c.pieces[b];
    e.empty_rows.push_back(0);
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t kv = h / (c.heads / c.kv_heads);
      const at::Tensor keys = p.k.narrow(0, p.keys[b].begin, piece.keys).select(1, kv).to(at::kDouble);
      const at::Tensor values = p.v.narrow(0, p.keys[b].begin, piece.keys).select(1, kv).to(at::kDouble);
      for (std::int64_t i = 0; i < piece.queries; ++i) {
        const std::int64_t token = p.offsets[b] + i, position = piece.first_query + i;
        at::Tensor scores =
            at::mv(keys, p.q[token][h].to(at::kDouble)) / std::sqrt(static_cast<double>(c.width));
        for (std::int64_t j = 0; j < piece.keys; ++j)
          if (c.causal && (j > position || (c.window > 0 && j <= position - c.window))) scores[j] = -INFINITY;
        const at::Tensor raw = at::softmax(scores, 0);
        at::Tensor kept = scores.clone();
        for (std::int64_t j = 0; j < piece.keys; ++j)
          if (p.removed[h * p.key_count + first_key + j] != 0) kept[j] = -INFINITY;
        const bool empty = kept.max().item<double>() == -INFINITY;
        const at::Tensor used = empty ? at::zeros_like(kept) : at::softmax(kept, 0);
        e.empty_rows.back() += empty ? 1 : 0;
        e.output[token].narrow(0, h * c.width, c.width).copy_(at::mv(values.t(), used));
        e.column_sum[p.query_class[token]][h].narrow(0, first_key, piece.keys).add_(raw);
        e.column_used[h].narrow(0, first_key, piece.keys).add_(used);
        e.diagonal[h][first_key + position] = raw[position];
      }
    }
    first_key += piece.keys;
  }
  return e;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> table{
      // whole causal sequences, some longer than a tile and than a panel
      {{{1, 0, 1}, {2, 0, 2}, {33, 0, 33}, {131, 0, 131}}, 4, 2, 16, true, 0, 0.2},
      {{{64, 0, 64}, {65, 0, 65}}, 2, 2, 8, true, 0, 0},
      // windows shorter and longer than the sequence, one of them of a key's own
      {{{100, 0, 100}, {7, 0, 7}}, 4, 1, 16, true, 10, 0.3},
      {{{150, 0, 150}}, 2, 2, 8, true, 64, 0.1},
      {{{20, 0, 20}}, 2, 2, 8, true, 1, 0.5},
      // the next token, and the next few, behind kept ones
      {{{1, 0, 1}, {90, 89, 1}, {40, 33, 7}}, 6, 2, 16, true, 0, 0.2},
      {{{90, 89, 1}, {40, 33, 7}}, 6, 2, 16, true, 12, 0.9},
      // a block in the middle, and a suffix, of bidirectional rows
      {{{70, 20, 30}, {70, 50, 20}, {9, 0, 9}}, 4, 2, 16, false, 0, 0.3},
  };
  return table;
}

void expect_equal(const AttentionResult& found, const Expected& expected, double tolerance,
                  const std::string& where) {
  EXPECT_TRUE(near(found.output, expected.output, tolerance)) << where;
  EXPECT_TRUE(near(found.observation.column_sum, expected.column_sum, tolerance, tolerance)) << where;
  EXPECT_TRUE(near(found.observation.column_used, expected.column_used, tolerance, tolerance)) << where;
  EXPECT_TRUE(near(found.observation.diagonal, expected.diagonal, tolerance)) << where;
  EXPECT_EQ(found.observation.empty_rows, expected.empty_rows) << where;
}

TEST(CausalAttention, EveryVersionEqualsThePlainOne) {
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const Case& c = cases()[i];
    const Problem p = make_problem(c);
    const Expected expected = reference(p, c);
    AttentionRequest request;
    request.removed = p.removed.data();
    request.columns = true;
    expect_equal(attention(Backend::aten, p.q, p.k, p.v, p.layout(c), request), expected, 2e-5,
                 "aten, case " + std::to_string(i));
    for (const CpuKernels* kernels : available_cpu_kernels()) {
      AttentionResult found{at::empty({p.q.size(0), c.heads * c.width}),
                            prepare_observation(c.heads, p.layout(c), request)};
      begin_observation(p.layout(c), request, found.observation);
      attention_cpu(*kernels, p.q, p.k, p.v, p.layout(c), request, found.output, found.observation);
      expect_equal(found, expected, 2e-5, std::string(kernels->name) + ", case " + std::to_string(i));
    }
  }
}

TEST(CausalAttention, Bfloat16IsTheSameWithinItsPrecision) {
  for (const Case& c : cases()) {
    Problem p = make_problem(c);
    for (at::Tensor* t : {&p.q, &p.k, &p.v}) *t = t->to(at::kBFloat16);
    const Expected expected = reference(p, c);
    AttentionRequest request;
    request.removed = p.removed.data();
    request.columns = true;
    expect_equal(attention(Backend::cpu, p.q, p.k, p.v, p.layout(c), request), expected, 2e-2, "bfloat16");
  }
}

// What a finite mask constant would let through (scores far below any constant) stays out.
TEST(CausalAttention, NoQuerySeesTheFutureHoweverLargeTheScores) {
  const Case c{{{70, 0, 70}}, 2, 1, 16, true, 0, 0};
  for (const double scale : {1e3, 1e4, 1e5, 1e6})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      Problem p = make_problem(c);
      // every visible key scores about -scale, the future ones + scale
      p.q = at::full_like(p.q, scale / 4).to(type);
      p.k = at::full_like(p.k, -1).to(type);
      p.v = at::zeros_like(p.k).to(type);
      for (const Backend backend : {Backend::cpu, Backend::aten}) {
        AttentionRequest request;
        request.columns = true;
        request.map_heads = {0, 1};
        const AttentionResult found = attention(backend, p.q, p.k, p.v, p.layout(c), request);
        for (const auto& [where, map] : found.observation.maps) {
          EXPECT_EQ(at::triu(map, 1).abs().max().item<float>(), 0) << scale;
          EXPECT_TRUE(near(map.sum(1), at::ones({70}), 1e-5)) << scale;
        }
      }
    }
}

// The closed forms of uniform causal attention: key k is seen by the T - k queries from k on.
TEST(CausalAttention, UniformAttentionHasItsClosedForm) {
  const std::int64_t length = 64;
  const Case c{{{length, 0, length}}, 1, 1, 8, true, 0, 0};
  Problem p = make_problem(c);
  p.q.zero_();
  AttentionRequest request;
  request.columns = true;
  const AttentionResult found = attention(Backend::cpu, p.q, p.k, p.v, p.layout(c), request);
  double harmonic = 0;
  for (std::int64_t i = 1; i <= length; ++i) harmonic += 1.0 / static_cast<double>(i);
  EXPECT_NEAR(found.observation.column_sum.sum(0)[0][0].item<double>() / length, harmonic / length, 1e-6);
  EXPECT_NEAR(harmonic / length, 0.0741, 5e-5);
}

}  // namespace
}  // namespace sinkscope
