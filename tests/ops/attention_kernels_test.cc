// Attention at every instruction set this processor runs, in each storage type, against libtorch's
// operations.
#include <ATen/ATen.h>
#include <omp.h>

#include <cmath>
#include <numeric>
#include <random>

#include "ops/attention.h"
#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

// One way through the kernels.
struct Path {
  std::string name;
  CpuKernels kernels;
  at::ScalarType storage;
  bool pairs;  // probabilities are rounded to bfloat16 for the product with the values
};

void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

std::vector<Path> paths() {
  std::vector<Path> all;
  for (const CpuKernels* level : available_cpu_kernels()) {
    const std::string name(level->name);
    all.push_back({name + "_float32", *level, at::kFloat, false});
    all.push_back({name + "_bfloat16", *level, at::kBFloat16, name == "avx512_bf16"});
    CpuKernels pairs = *level;
    pairs.attention_bf16 = level->attention_bf16_pairs;
    all.push_back({name + "_bfloat16_pairs", pairs, at::kBFloat16, true});
  }
  return all;
}

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t heads, kv_heads, width;
  int score_exponent;    // queries are integers times this power of two
  double removed_share;  // of the keys; of 1, a head in two loses all of them
};

struct Problem {
  at::Tensor q, k, v;  // in the storage type
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> query_class;
  std::vector<std::uint8_t> removed;
  std::int64_t longest = 0;
  double largest_score = 0;

  AttentionLayout layout() const { return {offsets, query_class}; }
  AttentionRequest everything() const {
    AttentionRequest request;
    request.removed = removed.empty() ? nullptr : removed.data();
    request.columns = request.statistics = true;
    request.map_heads = {0};
    return request;
  }
};

// q and k hold small integers over a power of two: their products sum up exactly in float32, in any order,
// and have no rounding in bfloat16 either.
Problem make_problem(const Case& c, at::ScalarType storage, std::uint64_t seed) {
  Problem p;
  for (const std::int64_t length : c.lengths) p.offsets.push_back(p.offsets.back() + length);
  p.longest = *std::max_element(c.lengths.begin(), c.lengths.end());
  const std::int64_t n = p.offsets.back();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::TensorOptions f32(at::kFloat);
  const double step = std::exp2(c.score_exponent);
  p.q = (at::randint(-4, 5, {n, c.heads, c.width}, generator, f32) * step).to(storage);
  p.k = at::randint(-4, 5, {n, c.kv_heads, c.width}, generator, f32).to(storage);
  p.v = at::randn({n, c.kv_heads, c.width}, generator, f32).to(storage);
  p.largest_score = 16 * step * std::sqrt(static_cast<double>(c.width));
  std::mt19937 random(static_cast<unsigned>(seed));
  for (std::int64_t i = 0; i < n; ++i) p.query_class.push_back(static_cast<std::uint8_t>(random() % 3));
  if (c.removed_share == 0) return p;
  std::bernoulli_distribution remove(c.removed_share);
  for (std::int64_t i = 0; i < c.heads * n; ++i)
    p.removed.push_back(c.removed_share < 1 ? remove(random) : (i / n) % 2 == 0);
  return p;
}

AttentionResult run(const Path& path, const Problem& p, const AttentionRequest& request) {
  const std::int64_t rows = request.output_tokens == nullptr
                                ? p.q.size(0)
                                : static_cast<std::int64_t>(request.output_tokens->size());
  AttentionResult result{at::empty({rows, p.q.size(1) * p.q.size(2)}, p.q.options()),
                         prepare_observation(p.q.size(1), p.layout(), request)};
  begin_observation(p.layout(), request, result.observation);
  attention_cpu(path.kernels, p.q, p.k, p.v, p.layout(), request, result.output, result.observation);
  return result;
}

// libtorch's operations in float32 on the same stored values.
AttentionResult plain(const Problem& p, const AttentionRequest& request) {
  return attention(Backend::aten, p.q.to(at::kFloat), p.k.to(at::kFloat), p.v.to(at::kFloat), p.layout(),
                   request);
}

// Bounds. u = 2^-24 is the rounding of float32; z the largest |score|. The products of q and k are exact (see
// make_problem), so that a probability differs by what follows them:
//   the scaled score, s of the plain version by u z, s - max of ours by 2 u (2 z): together 6 u z in the
//   exponent; the exponentials, 4 u each; the sum of S of them, at most S u each; the division, u each.
// A column adds S of them, with at most S u more; so does an output, whose weights sum up to 1.
struct Bounds {
  explicit Bounds(const Problem& p) {
    const double u = std::exp2(-24), keys = static_cast<double>(p.longest);
    probability = u * (6 * p.largest_score + 2 * keys + 12);
    column = probability + 2 * keys * u;
    // H = ln sum + sum p x with 0 <= sum p x <= ln S: both terms take the error of the sums once more
    entropy = 2 * column * (1 + std::log(keys));
  }
  double probability, column;  // relative
  double entropy;              // absolute
  /// Exponentials below 2^-126 are left out; what is renormalised has a sum above S e^-60.
  double vanished = 1e-11;
};

void expect_output_near(const Path& path, const Problem& p, const at::Tensor& ours, const at::Tensor& plain) {
  const double largest = p.v.abs().max().item<double>();
  const double rounded = std::exp2(-8);  // of bfloat16, relative
  EXPECT_TRUE(near(ours, plain, largest * (Bounds(p).column + (path.pairs ? rounded : 0)),
                   path.storage == at::kBFloat16 ? rounded : 0));
}

void expect_same_sight(const Problem& p, const AttentionObservation& ours,
                       const AttentionObservation& plain) {
  const Bounds bounds(p);
  EXPECT_TRUE(near(ours.column_sum, plain.column_sum, bounds.vanished, bounds.column));
  EXPECT_TRUE(near(ours.diagonal, plain.diagonal, bounds.vanished, bounds.probability));
  EXPECT_TRUE(near(ours.row_max, plain.row_max, 0, bounds.column));
  EXPECT_TRUE(near(ours.row_entropy, plain.row_entropy, bounds.entropy));
  EXPECT_EQ(ours.empty_rows, plain.empty_rows);
  for (const auto& [where, map] : plain.maps)
    EXPECT_TRUE(near(ours.maps.at(where), map, bounds.vanished, bounds.probability));
  if (!plain.column_used.defined()) return;
  EXPECT_TRUE(near(ours.column_used, plain.column_used, bounds.vanished, bounds.column));
  EXPECT_TRUE(near(ours.diagonal_used, plain.diagonal_used, bounds.vanished, bounds.probability));
}

Case random_case(std::mt19937& random) {
  const auto pick = [&](const auto& of) { return of[random() % of.size()]; };
  Case c;
  // Around the vectors, the panels and the tiles of 48 queries, and anything.
  const std::vector<std::int64_t> edges{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 96, 97, 255, 257};
  for (std::size_t b = 0, count = 1 + random() % 3; b < count; ++b)
    c.lengths.push_back(random() % 2 == 0 ? pick(edges) : 1 + static_cast<std::int64_t>(random() % 300));
  c.kv_heads = 1 + static_cast<std::int64_t>(random() % 2);
  c.heads = c.kv_heads * (1 + static_cast<std::int64_t>(random() % 3));
  c.width = pick(std::vector<std::int64_t>{1, 3, 8, 16, 20, 32, 33, 64, 128});
  c.score_exponent = pick(std::vector<int>{-4, -2, 0, 3});
  c.removed_share = pick(std::vector<double>{0, 0, 0.02, 0.2, 0.7, 1});
  return c;
}

class AttentionKernelPaths : public ::testing::TestWithParam<Path> {};

INSTANTIATE_TEST_SUITE_P(Paths, AttentionKernelPaths, ::testing::ValuesIn(paths()),
                         [](const auto& path) { return path.param.name; });

TEST_P(AttentionKernelPaths, EqualLibtorchsOperationsOnRandomShapes) {
  std::mt19937 random(1);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Case c = random_case(random);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", first length " << c.lengths[0] << ", heads "
                                      << c.heads << "/" << c.kv_heads << " of " << c.width << ", scores 2^"
                                      << c.score_exponent << ", removed " << c.removed_share);
    const Problem p = make_problem(c, GetParam().storage, seed);
    const AttentionResult ours = run(GetParam(), p, p.everything());
    const AttentionResult other = plain(p, p.everything());
    expect_output_near(GetParam(), p, ours.output, other.output);
    expect_same_sight(p, ours.observation, other.observation);
    if (HasFailure()) return;
  }
}

// Beyond about 1000 keys a tile holds fewer queries, and the product with the values runs in several blocks.
TEST_P(AttentionKernelPaths, EqualLibtorchsOperationsOnLongSequences) {
  for (const std::int64_t length : {1501, 2600}) {
    const Problem p = make_problem({{length}, 1, 1, 8, -2, 0.01}, GetParam().storage, 3);
    AttentionRequest request = p.everything();
    request.map_heads.clear();
    const AttentionResult ours = run(GetParam(), p, request);
    const AttentionResult other = plain(p, request);
    expect_output_near(GetParam(), p, ours.output, other.output);
    expect_same_sight(p, ours.observation, other.observation);
  }
}

TEST_P(AttentionKernelPaths, WantedRowsAreThoseOfAFullRunToTheBit) {
  const Problem p = make_problem({{50, 1, 113, 30}, 4, 2, 20, -2, 0.1}, GetParam().storage, 5);
  const AttentionResult full = run(GetParam(), p, p.everything());
  std::mt19937 random(2);
  for (const unsigned one_in : {1u, 2u, 9u, 60u, 1000000u}) {  // in the end none
    std::vector<std::int64_t> wanted;
    for (std::int64_t i = 0; i < p.q.size(0); ++i)
      if (random() % one_in == 0) wanted.push_back(i);
    const at::Tensor index = at::tensor(at::ArrayRef<std::int64_t>(wanted), at::TensorOptions(at::kLong));
    const at::Tensor expected = full.output.index_select(0, index);

    AttentionRequest outputs = p.everything();
    outputs.output_tokens = &wanted;
    const AttentionResult looked_at = run(GetParam(), p, outputs);
    EXPECT_TRUE(at::equal(looked_at.output, expected));
    EXPECT_TRUE(at::equal(looked_at.observation.column_sum, full.observation.column_sum));
    EXPECT_TRUE(at::equal(looked_at.observation.column_used, full.observation.column_used));

    Problem part = p;
    part.q = p.q.index_select(0, index);
    AttentionRequest queries;
    queries.removed = p.removed.data();
    queries.query_tokens = &wanted;
    EXPECT_TRUE(at::equal(run(GetParam(), part, queries).output, expected));
    queries.output_tokens = &wanted;
    EXPECT_TRUE(at::equal(run(GetParam(), part, queries).output, expected));
  }
}

TEST_P(AttentionKernelPaths, WritesIntoViewsAndNowhereElse) {
  const Problem p = make_problem({{41, 18}, 3, 1, 16, -2, 0.1}, GetParam().storage, 6);
  const AttentionResult expected = run(GetParam(), p, p.everything());
  const std::int64_t layers = 3, layer = 1, n = p.q.size(0);
  const auto forgotten = [](at::IntArrayRef shape) { return at::full(shape, -7.0, at::kFloat); };
  const at::Tensor sums = forgotten({3, layers, 3, n}), used = forgotten({layers, 3, n}),
                   entropy = forgotten({2, 3, layers, 3}), largest = forgotten({2, 3, layers, 3}),
                   wide = at::full({n, 3, 3 * 16}, -7.0, p.q.options());
  AttentionObservation seen;
  seen.column_sum = sums.select(1, layer);
  seen.column_used = used.select(0, layer);
  seen.diagonal = forgotten({3, n});
  seen.diagonal_used = forgotten({3, n});
  seen.row_entropy = entropy.select(2, layer);
  seen.row_max = largest.select(2, layer);
  at::Tensor output = wide.select(1, layer);
  begin_observation(p.layout(), p.everything(), seen);
  attention_cpu(GetParam().kernels, p.q, p.k, p.v, p.layout(), p.everything(), output, seen);
  EXPECT_TRUE(at::equal(output, expected.output));
  EXPECT_TRUE(at::equal(seen.column_sum, expected.observation.column_sum));
  EXPECT_TRUE(at::equal(seen.column_used, expected.observation.column_used));
  EXPECT_TRUE(at::equal(seen.diagonal, expected.observation.diagonal));
  EXPECT_TRUE(at::equal(seen.diagonal_used, expected.observation.diagonal_used));
  EXPECT_TRUE(near(seen.row_entropy, expected.observation.row_entropy, 0));
  EXPECT_TRUE(near(seen.row_max, expected.observation.row_max, 0));
  for (const std::int64_t other : {0, 2}) {
    for (const at::Tensor& around : {sums.select(1, other), used.select(0, other), entropy.select(2, other),
                                     largest.select(2, other), wide.select(1, other)})
      EXPECT_TRUE((around == -7.0).all().item<bool>());
  }
}

TEST_P(AttentionKernelPaths, BitsDependNeitherOnTheThreadsNorOnTheBatch) {
  const Problem p = make_problem({{70, 33, 5, 160}, 6, 2, 24, -2, 0.1}, GetParam().storage, 9);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const AttentionResult one = run(GetParam(), p, p.everything());
  for (const int threads : {2, 3, 5}) {
    omp_set_num_threads(threads);
    const AttentionResult many = run(GetParam(), p, p.everything());
    EXPECT_TRUE(at::equal(one.output, many.output));
    EXPECT_TRUE(at::equal(one.observation.column_sum, many.observation.column_sum));
    EXPECT_TRUE(at::equal(one.observation.column_used, many.observation.column_used));
  }
  omp_set_num_threads(before);
  const std::int64_t first = p.offsets[1], length = 33, heads = p.q.size(1), n = p.q.size(0);
  Problem alone;
  alone.q = p.q.narrow(0, first, length);
  alone.k = p.k.narrow(0, first, length);
  alone.v = p.v.narrow(0, first, length);
  alone.offsets = {0, length};
  alone.query_class.assign(p.query_class.begin() + first, p.query_class.begin() + first + length);
  for (std::int64_t h = 0; h < heads; ++h)
    alone.removed.insert(alone.removed.end(), p.removed.begin() + h * n + first,
                         p.removed.begin() + h * n + first + length);
  const AttentionResult single = run(GetParam(), alone, alone.everything());
  EXPECT_TRUE(at::equal(single.output, one.output.narrow(0, first, length)));
  EXPECT_TRUE(at::equal(single.observation.column_sum, one.observation.column_sum.narrow(2, first, length)));
  EXPECT_TRUE(
      at::equal(single.observation.column_used, one.observation.column_used.narrow(1, first, length)));
}

TEST_P(AttentionKernelPaths, LookingAndRemovingNothingLeaveTheOutputToTheBit) {
  Problem p = make_problem({{130}, 2, 2, 32, -2, 0}, GetParam().storage, 7);
  const at::Tensor unseen = run(GetParam(), p, {}).output;
  EXPECT_TRUE(at::equal(run(GetParam(), p, p.everything()).output, unseen));
  p.removed.assign(static_cast<std::size_t>(2 * 130), 0);
  const AttentionResult result = run(GetParam(), p, p.everything());
  EXPECT_TRUE(at::equal(result.output, unseen));
  EXPECT_TRUE(at::equal(result.observation.column_used, result.observation.column_sum.sum(0)));
  EXPECT_TRUE(at::equal(result.observation.diagonal_used, result.observation.diagonal));
}

// One key draws everything and is removed: the raw row stays as it was, the others are renormalised from
// their own maximum, however far below they lie.
TEST_P(AttentionKernelPaths, KeptKeysAreExactHoweverFarBelowTheRemovedOnes) {
  for (const double gap : {0.0, 10.0, 59.0, 61.0, 70.0, 80.0, 88.0, 96.0, 4000.0}) {
    const std::int64_t keys = 37;
    Problem p = make_problem({{keys}, 1, 1, 1, 0, 0}, GetParam().storage, 8);
    p.largest_score = gap + 4;
    p.q = at::ones({keys, 1, 1}).to(GetParam().storage);  // the score of a key is its value
    p.k[11] = gap;
    p.removed.assign(static_cast<std::size_t>(keys), 0);
    p.removed[11] = 1;
    const AttentionResult ours = run(GetParam(), p, p.everything());
    const AttentionResult other = plain(p, p.everything());
    expect_output_near(GetParam(), p, ours.output, other.output);
    expect_same_sight(p, ours.observation, other.observation);
    EXPECT_EQ(ours.observation.column_used[0][11].item<float>(), 0);
  }
}

// What stands behind the last key in a panel must not look like a score of zero.
TEST_P(AttentionKernelPaths, ScoresFarBelowZeroMakeAnOrdinaryRow) {
  for (const std::int64_t keys : {1, 5, 33}) {
    Problem p = make_problem({{keys}, 1, 1, 4, 0, 0}, GetParam().storage, 8);
    p.q = at::full({keys, 1, 4}, -512.0).to(GetParam().storage);
    p.k = at::ones({keys, 1, 4}).to(GetParam().storage);
    const AttentionResult ours = run(GetParam(), p, p.everything());
    EXPECT_TRUE(near(ours.observation.maps.at({0, 0}),
                     at::full({keys, keys}, 1.0 / static_cast<double>(keys)), 0, 1e-6));
    EXPECT_TRUE(near(ours.output, p.v.to(at::kFloat).mean(0).expand({keys, 1, 4}).reshape({keys, 4}), 0.03));
  }
}

TEST_P(AttentionKernelPaths, ValuesThatAreNoNumbersStayVisible) {
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    Problem p = make_problem({{60}, 1, 1, 16, -2, 0}, GetParam().storage, 4);
    p.q[7][0][3] = bad;
    const at::Tensor of_query = run(GetParam(), p, p.everything()).output.to(at::kFloat);
    EXPECT_TRUE(of_query[7].isnan().any().item<bool>());
    EXPECT_TRUE(of_query[8].isfinite().all().item<bool>());
    p = make_problem({{60}, 1, 1, 16, -2, 0}, GetParam().storage, 4);
    p.v[9][0][2] = bad;
    EXPECT_FALSE(run(GetParam(), p, {}).output.isfinite().select(1, 2).any().item<bool>());
    p = make_problem({{60}, 1, 1, 16, -2, 0}, GetParam().storage, 4);
    p.k[9][0][2] = bad;
    EXPECT_FALSE(run(GetParam(), p, {}).output.isfinite().all().item<bool>());
  }
}

TEST_P(AttentionKernelPaths, AnEmptySequenceHasNoStatistics) {
  const Problem p = make_problem({{3, 0, 4}, 2, 1, 8, 0, 0}, GetParam().storage, 4);
  const AttentionResult result = run(GetParam(), p, p.everything());
  EXPECT_TRUE(result.observation.row_entropy[1].isnan().all().item<bool>());
  EXPECT_EQ(result.observation.maps.at({1, 0}).numel(), 0);
}

TEST(AttentionRequests, ThatContradictThemselvesAreRefused) {
  const Problem p = make_problem({{5}, 1, 1, 8, 0, 0}, at::kFloat, 1);
  const std::vector<std::int64_t> some{1, 3}, others{2};
  AttentionRequest request;
  request.query_tokens = &some;
  EXPECT_THROW(attention(Backend::cpu, p.q, p.k, p.v, p.layout(), request), c10::Error);
  const at::Tensor q = p.q.narrow(0, 0, 2);
  EXPECT_THROW(attention(Backend::cpu, q, p.k, p.v, p.layout(), {}), c10::Error);
  request.output_tokens = &others;
  EXPECT_THROW(attention(Backend::cpu, q, p.k, p.v, p.layout(), request), c10::Error);
  request.output_tokens = nullptr;
  request.columns = true;
  EXPECT_THROW(attention(Backend::cpu, q, p.k, p.v, p.layout(), request), c10::Error);
}

}  // namespace
}  // namespace sinkscope
