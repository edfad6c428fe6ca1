// Both versions of attention against a plain one in float64.
#include "ops/attention.h"

#include <ATen/ATen.h>
#include <omp.h>

#include <numeric>
#include <random>

#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t heads, kv_heads, width;
  double score_scale;    // typical size of the scores before the softmax
  double removed_share;  // of the keys, or of those that are changed otherwise
  KeyChange change = {};
};

struct Problem {
  at::Tensor q, k, v;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> query_class;
  std::vector<std::uint8_t> removed;
  AttentionLayout layout() const { return {offsets, query_class}; }
};

// q and k hold small integers over a power of two, so that scores are exact in float32 and any difference is
// the softmax's.
Problem make_problem(const Case& c, std::uint64_t seed) {
  Problem p;
  for (const std::int64_t length : c.lengths) p.offsets.push_back(p.offsets.back() + length);
  const std::int64_t n = p.offsets.back();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto integers = [&](std::int64_t heads) {
    return at::randint(-4, 5, {n, heads, c.width}, generator, at::TensorOptions(at::kFloat));
  };
  p.q = integers(c.heads) * std::exp2(std::round(std::log2(c.score_scale / 6.7)));
  p.k = integers(c.kv_heads);
  p.v = at::randn({n, c.kv_heads, c.width}, generator);
  std::mt19937 random(static_cast<unsigned>(seed));
  for (std::int64_t i = 0; i < n; ++i) p.query_class.push_back(static_cast<std::uint8_t>(random() % 3));
  std::bernoulli_distribution remove(c.removed_share);
  for (std::int64_t i = 0; i < c.heads * n; ++i) p.removed.push_back(remove(random) ? 1 : 0);
  return p;
}

struct Expected {
  at::Tensor output, column_sum, column_used, diagonal, diagonal_used, row_entropy, row_max;
  std::vector<at::Tensor> maps;  // of head 0
  std::vector<std::int64_t> empty_rows;
};

at::Tensor used_rows(const at::Tensor& scores, const at::Tensor& raw, const at::Tensor& gone,
                     const KeyChange& change) {
  switch (change.action) {
    case KeyAction::remove:
      return gone.all().item<bool>() ? at::zeros_like(raw)
                                     : at::softmax(scores.masked_fill(gone, -INFINITY), -1);
    case KeyAction::scale: {
      const at::Tensor scaled = raw * at::where(gone, change.eta, 1.0);
      return scaled / scaled.sum(-1, true);
    }
    default:
      return raw;
  }
}

at::Tensor changed_values(const at::Tensor& values, const at::Tensor& gone, const KeyChange& change) {
  if (change.action == KeyAction::value_zero) return values.masked_fill(gone.unsqueeze(1), 0);
  if (change.action == KeyAction::value_mean)
    return at::where(gone.unsqueeze(1), values.mean(0, true), values);
  return values;
}

Expected reference(const Problem& p, const Case& c) {
  const std::int64_t n = p.offsets.back(), sequences = static_cast<std::int64_t>(c.lengths.size());
  const at::TensorOptions f64(at::kDouble);
  Expected e{at::zeros({n, c.heads * c.width}, f64),
             at::zeros({3, c.heads, n}, f64),
             at::zeros({c.heads, n}, f64),
             at::zeros({c.heads, n}, f64),
             at::zeros({c.heads, n}, f64),
             at::zeros({sequences, 3, c.heads}, f64),
             at::zeros({sequences, 3, c.heads}, f64),
             {},
             {}};
  for (std::int64_t b = 0; b < sequences; ++b) {
    const std::int64_t first = p.offsets[b], length = c.lengths[b];
    std::int64_t empty = 0;
    const at::Tensor classes =
        at::from_blob(const_cast<std::uint8_t*>(p.query_class.data()) + first, {length}, at::kByte);
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const auto rows = [&](const at::Tensor& t, std::int64_t head) {
        return t.narrow(0, first, length).select(1, head).to(at::kDouble);
      };
      const std::int64_t kv = h / (c.heads / c.kv_heads);
      const at::Tensor scores =
          at::matmul(rows(p.q, h), rows(p.k, kv).t()) / std::sqrt(static_cast<double>(c.width));
      const at::Tensor gone =
          at::from_blob(const_cast<std::uint8_t*>(p.removed.data()) + h * n + first, {length}, at::kByte)
              .to(at::kBool);
      const at::Tensor raw = at::softmax(scores, -1);
      const bool nothing = gone.all().item<bool>();
      const at::Tensor values = rows(p.v, kv);
      const at::Tensor used = used_rows(scores, raw, gone, c.change);
      if (nothing && c.change.action == KeyAction::remove) empty += length;
      e.output.narrow(0, first, length)
          .narrow(1, h * c.width, c.width)
          .copy_(at::matmul(used, changed_values(values, gone, c.change)));
      const at::Tensor entropy = -at::xlogy(raw, raw).sum(-1);
      for (std::int64_t k = 0; k < 3; ++k) {
        const at::Tensor member = (classes == k).to(at::kDouble);
        e.column_sum[k][h].narrow(0, first, length).copy_(at::matmul(member, raw));
        e.row_entropy[b][k][h] = (member * entropy).sum() / member.sum();
        e.row_max[b][k][h] = (member * raw.amax(-1)).sum() / member.sum();
      }
      e.column_used[h].narrow(0, first, length).copy_(used.sum(0));
      e.diagonal[h].narrow(0, first, length).copy_(raw.diagonal());
      e.diagonal_used[h].narrow(0, first, length).copy_(used.diagonal());
      if (h == 0) e.maps.push_back(raw);
    }
    e.empty_rows.push_back(empty);
  }
  return e;
}

AttentionRequest everything(const Problem& p, const KeyChange& change = {}) {
  AttentionRequest request;
  request.change = change;
  request.removed = p.removed.data();
  request.columns = true;
  request.statistics = true;
  request.map_heads = {0};
  return request;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> table{{{1}, 1, 1, 8, 3, 0},
                                       {{1, 1}, 2, 2, 7, 3, 1},
                                       {{2, 5}, 4, 2, 16, 3, 0.3},
                                       {{31}, 3, 1, 5, 10, 0.1},
                                       {{32, 33}, 4, 4, 64, 5, 0.05},
                                       {{65, 3, 17}, 6, 3, 33, 1, 0.5},
                                       {{300}, 2, 1, 128, 3, 0.01},
                                       {{129, 64}, 8, 2, 80, 40, 0.2},
                                       {{40}, 2, 2, 16, 1e3, 0.2},
                                       {{77, 10}, 2, 1, 32, 1e4, 0.3},
                                       {{50}, 4, 4, 12, 1e6, 0.5},
                                       {{13}, 2, 2, 9, 5, 1},
                                       {{65, 3}, 4, 2, 33, 3, 0.3, {KeyAction::scale, 0.2}},
                                       {{70}, 2, 2, 16, 5, 0.1, {KeyAction::scale, 30}},
                                       {{40, 1}, 2, 1, 8, 1e3, 0.5, {KeyAction::scale, 1e-4}},
                                       {{33}, 2, 2, 9, 3, 1, {KeyAction::scale, 0.5}},
                                       {{65, 3, 17}, 6, 3, 33, 2, 0.4, {KeyAction::value_zero}},
                                       {{31}, 2, 1, 16, 3, 1, {KeyAction::value_zero}},
                                       {{129, 5}, 4, 2, 40, 3, 0.2, {KeyAction::value_mean}},
                                       {{66}, 2, 2, 7, 4, 1, {KeyAction::value_mean}},
                                       {{64}, 2, 1, 24, 3, 0, {KeyAction::value_mean}}};
  return table;
}

class Attention : public ::testing::TestWithParam<std::tuple<Backend, std::size_t>> {};

TEST_P(Attention, EqualsTheReferenceInFloat64) {
  const auto& [backend, index] = GetParam();
  const Case& c = cases()[index];
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Problem p = make_problem(c, seed);
    const Expected e = reference(p, c);
    const AttentionResult result = attention(backend, p.q, p.k, p.v, p.layout(), everything(p, c.change));
    const AttentionObservation& seen = result.observation;
    const auto longest = static_cast<double>(*std::max_element(c.lengths.begin(), c.lengths.end()));
    // Scores of size s are exact but for one product with 1/sqrt(width): s * 2^-23 absolute, the same
    // relative in the probabilities; the exponential and the sums add a few roundings more.
    const double probability = std::min(1.0, 3 * c.score_scale * 4 * 1.2e-7) + 2e-6;
    if (c.score_scale < 1e5) {
      EXPECT_TRUE(near(result.output, e.output, 6 * probability, 1e-5));
      EXPECT_TRUE(near(seen.column_sum, e.column_sum, probability, probability + longest * 6e-8));
      EXPECT_TRUE(near(seen.column_used, e.column_used, probability, probability + longest * 6e-8));
      EXPECT_TRUE(near(seen.diagonal, e.diagonal, probability));
      EXPECT_TRUE(near(seen.diagonal_used, e.diagonal_used, probability));
      EXPECT_TRUE(near(seen.row_max, e.row_max, probability));
      EXPECT_TRUE(near(seen.row_entropy, e.row_entropy, 10 * probability, 1e-4));
      for (std::size_t b = 0; b < c.lengths.size(); ++b)
        EXPECT_TRUE(near(seen.maps.at({static_cast<std::int64_t>(b), 0}), e.maps[b], probability));
    } else {  // one-hot rows: which key wins a tie of rounded scores is open, what must hold is mass and
              // finiteness
      EXPECT_TRUE(result.output.isfinite().all().item<bool>());
      EXPECT_TRUE(near(seen.column_sum.sum(at::IntArrayRef{0, 2}), at::full({c.heads}, longest), 1e-3));
    }
    EXPECT_EQ(seen.empty_rows, e.empty_rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention,
                         ::testing::Combine(::testing::Values(Backend::cpu, Backend::aten),
                                            ::testing::Range<std::size_t>(0, cases().size())));

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  const Case c{{70, 33, 5}, 6, 2, 24, 3, 0.1};
  const Problem p = make_problem(c, 9);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const AttentionResult one = attention(Backend::cpu, p.q, p.k, p.v, p.layout(), everything(p));
  for (const int threads : {2, 3, 5}) {
    omp_set_num_threads(threads);
    const AttentionResult many = attention(Backend::cpu, p.q, p.k, p.v, p.layout(), everything(p));
    EXPECT_TRUE(at::equal(one.output, many.output));
    EXPECT_TRUE(at::equal(one.observation.column_sum, many.observation.column_sum));
    EXPECT_TRUE(at::equal(one.observation.column_used, many.observation.column_used));
  }
  omp_set_num_threads(before);
}

TEST(Attention, ClassesAddUpToTheSequenceLength) {
  const Case c{{90}, 2, 2, 16, 2, 0};
  const Problem p = make_problem(c, 1);
  const AttentionResult result = attention(Backend::cpu, p.q, p.k, p.v, p.layout(), everything(p));
  EXPECT_TRUE(near(result.observation.column_sum.sum(at::IntArrayRef{0, 2}), at::full({2}, 90.0), 1e-4));
}

TEST(Attention, EqualKeysGiveEveryKeyAColumnOfOne) {
  const std::vector<std::int64_t> offsets{0, 64};
  const std::vector<std::uint8_t> classes(64, 2);
  const at::Tensor same = at::ones({64, 1, 8});
  AttentionRequest request;
  request.columns = true;
  const AttentionResult result = attention(Backend::cpu, same, same, same, {offsets, classes}, request);
  EXPECT_TRUE(near(result.observation.column_sum[2], at::ones({1, 64}), 1e-5));
}

}  // namespace
}  // namespace sinkscope
