// Variants of attention against plain loops in float64, and values that can be had with pencil and paper.
#include "ops/attention_variant.h"

#include <cmath>
#include <random>

#include "ops/attention.h"
#include "support/golden.h"
#include "variant_cases.h"

namespace sinkscope {
namespace {

using testing::near;
using testing::VariantCase;

constexpr std::int64_t width = 6;
const std::vector<std::int64_t> lengths{7, 1, 19, 40};

struct Problem {
  VariantCase test;
  at::Tensor q, k, v;  // [N, heads, width]
  AttentionVariantWeights weights;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> query_class;
  std::vector<std::uint8_t> removed;  // [H, N]

  AttentionLayout layout() const { return {offsets, query_class, {}, test.causal, test.window, test.prefix}; }
  VariantOfLayer layer() const { return {&test.variant, &weights}; }
};

Problem make_problem(const VariantCase& c) {
  Problem p;
  p.test = c;
  for (const std::int64_t length : lengths) p.offsets.push_back(p.offsets.back() + length);
  const std::int64_t n = p.offsets.back();
  at::manual_seed(5);
  p.q = at::randn({n, c.heads, width});
  p.k = at::randn({n, c.kv_heads, width});
  p.v = at::randn({n, c.kv_heads, width});
  p.weights = random_weights(c, width, at::kFloat);
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < n; ++i) p.query_class.push_back(static_cast<std::uint8_t>(random() % 3));
  for (std::int64_t i = 0; i < c.heads * n; ++i) p.removed.push_back(random() % 3 == 0 ? 1 : 0);
  return p;
}

// The formulas, with no tensor.

using Vector = std::vector<double>;

Vector row_of(const at::Tensor& vector) {
  const at::Tensor as_double = vector.to(at::kDouble).contiguous();
  return {as_double.data_ptr<double>(), as_double.data_ptr<double>() + as_double.numel()};
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double elu(double x) { return x > 0 ? x : std::exp(x) - 1; }

Vector elu_plus_one(Vector x) {
  for (double& value : x) value = elu(value) + 1;
  return x;
}

Vector phi(const AttentionVariantWeights& weights, const Vector& x) {
  Vector hidden, result;
  for (std::int64_t i = 0; i < width; ++i)
    hidden.push_back(std::max(0.0, dot(row_of(weights.kernel_in[i]), x)));
  for (std::int64_t i = 0; i < width; ++i) result.push_back(dot(row_of(weights.kernel_out[i]), hidden));
  return result;
}

double similarity(const Problem& p, const Vector& q, const Vector& k, double bias) {
  const double root = std::sqrt(static_cast<double>(width));
  const double s = dot(q, k) / root + bias;
  switch (p.test.variant.similarity) {
    case Similarity::softmax:
      return std::exp(s);
    case Similarity::sigmoid:
      return 1 / (1 + std::exp(-s));
    case Similarity::elu_plus_one:
      return elu(s) + 1;
    case Similarity::elu_kernel:
      return dot(elu_plus_one(q), elu_plus_one(k)) / root;
    case Similarity::linear_kernel:
      return s;
    case Similarity::mlp_kernel:
      return dot(phi(p.weights, q), phi(p.weights, k)) / root;
  }
  return NAN;
}

// T5's, by the smallest distance of each bucket.
std::int64_t bucket_of(std::int64_t distance, std::int64_t exact) {
  if (distance < exact) return distance;
  std::int64_t bucket = exact;
  const auto first = static_cast<double>(exact);
  while (bucket + 1 < 2 * exact &&
         static_cast<double>(distance) >=
             first * std::pow(128 / first, static_cast<double>(bucket + 1 - exact) / first) - 1e-9)
    ++bucket;
  return bucket;
}

std::int64_t relative_bucket_of(std::int64_t query, std::int64_t key, bool causal) {
  if (causal) return bucket_of(std::max<std::int64_t>(0, query - key), 16);
  return bucket_of(std::abs(query - key), 8) + (key > query ? 16 : 0);
}

double position_bias(const Problem& p, std::int64_t head, std::int64_t query, std::int64_t key) {
  switch (p.test.variant.positions) {
    case PositionEncoding::alibi: {
      const Vector slopes = p.test.heads == 4 ? Vector{0.25, 0.0625, 0.015625, 0.00390625}
                                              : Vector{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
      return -slopes[static_cast<std::size_t>(head)] * static_cast<double>(std::abs(query - key));
    }
    case PositionEncoding::relative:
      return p.weights.relative_bias[head][relative_bucket_of(query, key, p.test.causal)].item<double>();
    case PositionEncoding::relative_bucket:
      return static_cast<double>(relative_bucket_of(query, key, p.test.causal));
    default:
      return 0;
  }
}

bool sees(const VariantCase& c, std::int64_t query, std::int64_t key) {
  if (!c.causal || key < c.prefix) return true;
  return key <= query && (c.window == 0 || key > query - c.window);
}

double divisor(const AttentionVariant& variant, const Vector& similarities) {
  if (!variant.normalised) return 1;
  double sum = 0;
  for (const double s : similarities) sum += variant.p == 1 ? s : std::pow(s, variant.p);
  const bool is_signed =
      variant.similarity == Similarity::linear_kernel || variant.similarity == Similarity::mlp_kernel;
  if (is_signed) return std::max(std::abs(sum), 1.0);
  return std::pow(sum, 1 / variant.p);
}

// What the values are weighted with, and the same as attention that sums to 1.
struct Row {
  Vector used, shares;
};
Row make_row(const AttentionVariant& variant, const Vector& similarities) {
  Row row;
  double sum = 0;
  for (const double s : similarities) sum += std::abs(s);
  const double z = divisor(variant, similarities);
  for (const double s : similarities) {
    row.used.push_back(z == 0 ? 0 : variant.scale * s / z);
    row.shares.push_back(std::abs(s) / (sum + 1e-8));
  }
  return row;
}

bool is_removed(const Problem& p, std::int64_t head, std::int64_t token) {
  return p.removed[static_cast<std::size_t>(head * p.offsets.back() + token)] != 0;
}

// Similarities of one query of sequence b to its keys, the slot's in front where there is one; 0 where the
// key is not seen or removed.
Vector row_similarities(const Problem& p, std::size_t b, std::int64_t query, std::int64_t head,
                        bool with_removed) {
  const std::int64_t first = p.offsets[b], kv = head / (p.test.heads / p.test.kv_heads);
  const Vector q = row_of(p.q[first + query][head]);
  Vector result;
  if (p.weights.slot_key.defined())
    result.push_back(
        similarity(p, q, row_of(p.weights.slot_key[p.weights.slot_key.size(0) == 1 ? 0 : kv]), 0));
  for (std::int64_t key = 0; key < lengths[b]; ++key) {
    const bool gone = with_removed && is_removed(p, head, first + key);
    result.push_back(gone || !sees(p.test, query, key) ? 0
                                                       : similarity(p, q, row_of(p.k[first + key][kv]),
                                                                    position_bias(p, head, query, key)));
  }
  return result;
}

struct Expected {
  at::Tensor output, column_sum, column_used, diagonal, diagonal_used, entropy;
  at::Tensor map;  // of the last sequence, head 1
  std::vector<std::int64_t> empty_rows = {};
};

at::Tensor output_of(const Problem& p, std::size_t b, std::int64_t head, const Vector& used) {
  const std::int64_t kv = head / (p.test.heads / p.test.kv_heads),
                     slot = p.weights.slot_key.defined() ? 1 : 0;
  at::Tensor sum = at::zeros({width}, at::kDouble);
  if (slot == 1) {
    const at::Tensor& value = p.weights.slot_value;
    sum += used[0] * value[value.size(0) == 1 ? 0 : kv].to(at::kDouble);
  }
  for (std::int64_t key = 0; key < lengths[b]; ++key)
    sum += used[static_cast<std::size_t>(slot + key)] * p.v[p.offsets[b] + key][kv].to(at::kDouble);
  if (p.weights.value_bias.defined()) sum += p.weights.value_bias[head].to(at::kDouble);
  return sum;
}

double entropy_of(const Vector& shares) {
  double sum = 0;
  for (const double share : shares)
    if (share > 0) sum -= share * std::log(share);
  return sum;
}

void add_query(const Problem& p, std::size_t b, std::int64_t query, std::int64_t head, Expected& e) {
  const std::int64_t token = p.offsets[b] + query, slot = p.weights.slot_key.defined() ? 1 : 0;
  const std::uint8_t kind = p.query_class[static_cast<std::size_t>(token)];
  const Row raw = make_row(p.test.variant, row_similarities(p, b, query, head, false));
  const Row used = make_row(p.test.variant, row_similarities(p, b, query, head, true));
  e.output[token].narrow(0, head * width, width).copy_(output_of(p, b, head, used.used));
  for (std::int64_t key = 0; key < lengths[b]; ++key) {
    const auto place = static_cast<std::size_t>(slot + key);
    e.column_sum[kind][head][p.offsets[b] + key] += raw.shares[place];
    e.column_used[head][p.offsets[b] + key] += used.shares[place];
    if (head == 1 && b + 1 == lengths.size()) e.map[query][key] = raw.shares[place];
  }
  e.diagonal[head][token] = raw.shares[static_cast<std::size_t>(slot + query)];
  e.diagonal_used[head][token] = used.shares[static_cast<std::size_t>(slot + query)];
  e.entropy[static_cast<std::int64_t>(b)][kind][head] += entropy_of(raw.shares);
  bool none = slot == 0;
  for (std::int64_t key = 0; key < lengths[b]; ++key)
    none = none && (!sees(p.test, query, key) || is_removed(p, head, p.offsets[b] + key));
  e.empty_rows[b] += none ? 1 : 0;
}

Expected reference(const Problem& p) {
  const at::TensorOptions f64(at::kDouble);
  const std::int64_t n = p.offsets.back(), heads = p.test.heads;
  Expected e{at::zeros({n, heads * width}, f64),
             at::zeros({3, heads, n}, f64),
             at::zeros({heads, n}, f64),
             at::zeros({heads, n}, f64),
             at::zeros({heads, n}, f64),
             at::zeros({static_cast<std::int64_t>(lengths.size()), 3, heads}, f64),
             at::zeros({lengths.back(), lengths.back()}, f64)};
  e.empty_rows.assign(lengths.size(), 0);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    for (std::int64_t query = 0; query < lengths[b]; ++query)
      for (std::int64_t head = 0; head < heads; ++head) add_query(p, b, query, head, e);
    for (std::int64_t kind = 0; kind < 3; ++kind)
      e.entropy[static_cast<std::int64_t>(b)][kind] /= static_cast<double>(
          std::count(p.query_class.begin() + p.offsets[b], p.query_class.begin() + p.offsets[b + 1], kind));
  }
  return e;
}

class AttentionVariants : public ::testing::TestWithParam<VariantCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, AttentionVariants, ::testing::ValuesIn(testing::variant_cases()),
                         [](const auto& c) { return c.param.name; });

TEST_P(AttentionVariants, AreWhatTheirFormulasSay) {
  const Problem p = make_problem(GetParam());
  const Expected e = reference(p);
  AttentionRequest request;
  request.removed = p.removed.data();
  request.columns = request.statistics = true;
  request.map_heads = {1};
  request.layer_variant = p.layer();
  const AttentionResult found = attention(Backend::aten, p.q, p.k, p.v, p.layout(), request);
  const AttentionObservation& seen = found.observation;
  // Scores and similarities are sums of some tens of float32 numbers, and so are rows and their products
  // with values; signed rows cancel.
  const double scale = std::max(1.0, e.output.abs().max().item<double>());
  EXPECT_TRUE(near(found.output, e.output, 2e-5 * scale));
  EXPECT_TRUE(near(seen.column_sum, e.column_sum, 2e-5, 1e-5));
  EXPECT_TRUE(near(seen.column_used, e.column_used, 2e-5, 1e-5));
  EXPECT_TRUE(near(seen.diagonal, e.diagonal, 1e-5));
  EXPECT_TRUE(near(seen.diagonal_used, e.diagonal_used, 1e-5));
  EXPECT_TRUE(near(seen.row_entropy, e.entropy, 5e-5));
  EXPECT_TRUE(near(seen.maps.at({3, 1}), e.map, 1e-5));
  EXPECT_EQ(seen.empty_rows, e.empty_rows);
}

TEST_P(AttentionVariants, OfSomeQueriesAreThoseRows) {
  const Problem p = make_problem(GetParam());
  AttentionRequest request;
  request.layer_variant = p.layer();
  const at::Tensor all = attention(Backend::aten, p.q, p.k, p.v, p.layout(), request).output;
  const std::vector<std::int64_t> queries{1, 6, 7, 30, 31, 66}, outputs{6, 30, 66};
  const at::Tensor index = at::tensor(queries);
  request.query_tokens = &queries;
  const at::Tensor some =
      attention(Backend::aten, p.q.index_select(0, index), p.k, p.v, p.layout(), request).output;
  EXPECT_TRUE(near(some, all.index_select(0, index), 1e-5));
  request.output_tokens = &outputs;
  const at::Tensor fewer =
      attention(Backend::aten, p.q.index_select(0, index), p.k, p.v, p.layout(), request).output;
  EXPECT_TRUE(near(fewer, all.index_select(0, at::tensor(outputs)), 1e-5));
}

// The last queries of a sequence against kept keys, with rows between the sequences' keys that nobody reads.
TEST_P(AttentionVariants, OfQueriesBehindKeptKeysAreThoseRows) {
  const Problem p = make_problem(GetParam());
  AttentionRequest request;
  request.layer_variant = p.layer();
  const at::Tensor all = attention(Backend::aten, p.q, p.k, p.v, p.layout(), request).output;
  const std::vector<KeyRange> keys{{0, 7, 5}, {8, 19, 18}, {27, 40, 10}};  // the second sequence is left out
  const std::vector<std::int64_t> offsets{0, 2, 3, 33};
  const std::vector<std::uint8_t> classes(33, 0);
  const AttentionLayout layout{offsets, classes, keys, p.test.causal, p.test.window, p.test.prefix};
  const at::Tensor tokens = at::cat({at::arange(5, 7), at::arange(26, 27), at::arange(37, 67)});
  const at::Tensor some =
      attention(Backend::aten, p.q.index_select(0, tokens), p.k, p.v, layout, request).output;
  EXPECT_TRUE(near(some, all.index_select(0, tokens), 1e-5));
}

// Pencil and paper.

// Columns [H, T] of a causal sequence whose scores q.k are all `score`, with values of 1.
AttentionResult of_equal_tokens(const AttentionVariant& variant, const AttentionVariantWeights& weights,
                                std::int64_t length, std::int64_t heads, double score) {
  const at::Tensor q = at::full({length, heads, 4}, score / 2), k = at::ones({length, heads, 4});
  const std::vector<std::int64_t> offsets{0, length};
  const std::vector<std::uint8_t> classes(static_cast<std::size_t>(length), 0);
  AttentionRequest request;
  request.columns = true;
  request.layer_variant = {&variant, &weights};
  return attention(Backend::aten, q, k, k, {offsets, classes, {}, true}, request);
}

// alpha_k, k from 0: the mean over the queries that see key k.
double alpha(const AttentionResult& seen, std::int64_t head, std::int64_t key) {
  const at::Tensor columns = seen.observation.column_sum.sum(0);
  return columns[head][key].item<double>() / static_cast<double>(columns.size(1) - key);
}

TEST(AttentionVariant, UniformRowsHaveHarmonicColumns) {
  for (const AttentionVariant& variant :
       {AttentionVariant{.positions = PositionEncoding::none},
        AttentionVariant{.similarity = Similarity::sigmoid},
        AttentionVariant{.similarity = Similarity::sigmoid, .normalised = false},
        AttentionVariant{.similarity = Similarity::elu_plus_one, .normalised = false, .scale = 3}}) {
    const AttentionResult eight = of_equal_tokens(variant, {}, 8, 1, 0);
    const AttentionResult more = of_equal_tokens(variant, {}, 64, 1, 0);
    for (const auto& [key, value] : std::map<int, double>{
             {1, .339732}, {2, .245408}, {3, .202976}, {4, .176905}, {7, .133929}, {8, .125}})
      EXPECT_NEAR(alpha(eight, 0, key - 1), value, 1e-6);
    for (const auto& [key, value] : std::map<int, double>{
             {1, .074123}, {2, .059427}, {3, .052321}, {4, .047714}, {63, .015749}, {64, .015625}})
      EXPECT_NEAR(alpha(more, 0, key - 1), value, 1e-6);
  }
}

TEST(AttentionVariant, UnnormalisedSigmoidOfZeroWeighsEachValueWithAHalf) {
  const AttentionResult seen =
      of_equal_tokens({.similarity = Similarity::sigmoid, .normalised = false}, {}, 5, 1, 0);
  EXPECT_TRUE(near(seen.output.select(1, 0), at::arange(1, 6) * 0.5, 1e-6));
}

// softmax over {0, s_1 .. s_i}: the slot takes 1 / (1 + i e^s) of row i, which for s = 0 is 1 / (i + 1).
TEST(AttentionVariant, AKeyOfZeroIsSoftmaxPlusOne) {
  AttentionVariantWeights weights;
  weights.slot_key = weights.slot_value = at::zeros({1, 4});
  for (const double score : {0.0, 1.5}) {
    const AttentionResult seen = of_equal_tokens({.slot = KeySlot::key_value_bias}, weights, 9, 2, score);
    const at::Tensor seen_by_row = at::arange(1, 10) * std::exp(score);
    EXPECT_TRUE(near(seen.output.select(1, 0), seen_by_row / (seen_by_row + 1), 1e-6));
  }
}

TEST(AttentionVariant, EqualTokensHaveNoSinkUnderAlibiAndALearntBias) {
  at::manual_seed(1);
  AttentionVariantWeights weights;
  weights.relative_bias = at::randn({8, relative_buckets});
  for (const PositionEncoding positions : {PositionEncoding::alibi, PositionEncoding::relative}) {
    const AttentionResult seen = of_equal_tokens({.positions = positions}, weights, 64, 8, 1);
    for (std::int64_t head = 0; head < 8; ++head) EXPECT_LT(alpha(seen, head, 0), 0.3);
  }
}

// As released the bucket's number favours what is far.
TEST(AttentionVariant, ABucketsNumberMakesTheFirstTokenASink) {
  const AttentionResult seen =
      of_equal_tokens({.positions = PositionEncoding::relative_bucket}, {}, 64, 1, 1);
  EXPECT_GT(alpha(seen, 0, 0), 0.3);
}

TEST(AlibiSlopes, HalveFromHeadToHead) {
  const at::Tensor eight = at::exp2(-at::arange(1, 9).to(at::kDouble));
  EXPECT_TRUE(near(alibi_slopes(8, at::kDouble), eight, 1e-15));
  const at::Tensor between = at::exp2(at::tensor({-0.5, -1.5, -2.5, -3.5}, at::kDouble));
  EXPECT_TRUE(near(alibi_slopes(12, at::kDouble), at::cat({eight, between}), 1e-15));
  EXPECT_TRUE(near(alibi_slopes(1, at::kDouble), at::full({1}, std::exp2(-8), at::kDouble), 1e-15));
}

std::vector<std::int64_t> buckets(const std::vector<std::int64_t>& distances, bool causal) {
  const at::Tensor result =
      relative_buckets_of(at::tensor(distances) + 2000, at::full({1}, 2000, at::kLong), causal);
  return {result.data_ptr<std::int64_t>(), result.data_ptr<std::int64_t>() + result.numel()};
}

// What transformers' T5 (`_relative_position_bucket`, 32 buckets, 128) gives for them.
TEST(RelativeBuckets, AreThoseOfT5) {
  EXPECT_EQ(buckets({0, 1, 15, 16, 17, 18, 19, 64, 112, 113, 127, 128, 1000}, true),
            (std::vector<std::int64_t>{0, 1, 15, 16, 16, 16, 17, 26, 30, 31, 31, 31, 31}));
  EXPECT_EQ(buckets({-1, -200}, true), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(buckets({0, 7, 8, 15, 16, 32, 64, 127, 128, 1000}, false),
            (std::vector<std::int64_t>{0, 7, 8, 9, 10, 12, 14, 15, 15, 15}));
  EXPECT_EQ(buckets({-1, -7, -8, -16, -127, -1000}, false),
            (std::vector<std::int64_t>{17, 23, 24, 26, 31, 31}));
}

TEST(FixedSlotValue, LiesAlongTheFirstCoordinateOrAlongAll) {
  const auto value = [](SlotValue direction, double norm) {
    return fixed_slot_value({.slot_value = direction, .slot_value_norm = norm}, 16, at::kDouble);
  };
  EXPECT_TRUE(near(value(SlotValue::zero, 0), at::zeros({1, 16}), 0));
  EXPECT_TRUE(near(value(SlotValue::first, 20), at::cat({at::full({1, 1}, 20.0), at::zeros({1, 15})}, 1), 0));
  EXPECT_TRUE(near(value(SlotValue::uniform, 20), at::full({1, 16}, 5.0), 1e-14));
}

TEST(SlotKey, OfFewDimensionsEndsInZeros) {
  const at::Tensor learnt = at::arange(1, 5).to(at::kFloat).view({2, 2});
  EXPECT_TRUE(at::equal(slot_key(learnt, 3), at::tensor({1.0F, 2.0F, 0.0F, 3.0F, 4.0F, 0.0F}).view({2, 3})));
  EXPECT_TRUE(at::equal(slot_key(learnt, 2), learnt));
}

TEST(SinusoidTable, HasSinesThenCosines) {
  const at::Tensor table = sinusoid_table(101, 4);
  const at::Tensor row = at::tensor({std::sin(100.0), std::sin(1.0), std::cos(100.0), std::cos(1.0)});
  EXPECT_TRUE(near(table[100], row, 1e-6));
  EXPECT_TRUE(near(table[0], at::tensor({0.0, 0.0, 1.0, 1.0}), 0));
}

// Rows of one number that underflows, and powers of it, are a gradient's and a quotient's hardest case.
TEST(VariantRows, FarBelowZeroStayFiniteWithTheirGradients) {
  for (const Similarity similarity : {Similarity::sigmoid, Similarity::elu_plus_one})
    for (const double p : {1.0, 2.0, 50.0}) {
      const at::Tensor scores = at::tensor({-40.0F, -200.0F, -3.0F, -200.0F}).view({2, 2}).requires_grad_();
      const VariantRows rows = variant_rows({.similarity = similarity, .p = p}, scores, {});
      rows.used.sum().backward();
      EXPECT_TRUE(rows.used.isfinite().all().item<bool>()) << p;
      EXPECT_TRUE(scores.grad().isfinite().all().item<bool>()) << p;
      EXPECT_NEAR(rows.used[1][0].item<double>(), 1, 1e-5) << p;
    }
}

}  // namespace
}  // namespace sinkscope
