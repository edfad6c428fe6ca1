// Keys of single queries, changed and listed: every instruction set and libtorch's operations against plain
// loops in float64.
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

struct Path {
  std::string name;
  const CpuKernels* kernels;  // null: libtorch's operations
  at::ScalarType storage;
};
void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

std::vector<Path> paths() {
  std::vector<Path> all{{"libtorch_float32", nullptr, at::kFloat}};
  for (const CpuKernels* level : available_cpu_kernels()) {
    all.push_back({std::string(level->name) + "_float32", level, at::kFloat});
    all.push_back({std::string(level->name) + "_bfloat16", level, at::kBFloat16});
  }
  return all;
}

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t heads, kv_heads, width;
  double removed_share;  // of the room of a query's list, 1: every key of every second query
  KeyChange change;
  RowRequest rows;  // without `listed`
  bool some_listed;
};

// Scores are small integers over a power of two, exact everywhere, so that equal ones tie in every path.
struct Problem {
  at::Tensor q, k, v;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> query_class, listed;
  std::vector<std::int32_t> lists;  // [H, N, room]
  std::int64_t room = 0;

  AttentionLayout layout() const { return {offsets, query_class}; }
};

Problem make_problem(const Case& c, at::ScalarType storage, unsigned seed) {
  Problem p;
  for (const std::int64_t length : c.lengths) p.offsets.push_back(p.offsets.back() + length);
  const std::int64_t n = p.offsets.back();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::TensorOptions f32(at::kFloat);
  p.q = (at::randint(-4, 5, {n, c.heads, c.width}, generator, f32) * 0.25).to(storage);
  p.k = at::randint(-4, 5, {n, c.kv_heads, c.width}, generator, f32).to(storage);
  p.v = at::randn({n, c.kv_heads, c.width}, generator, f32).to(storage);
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < n; ++i) {
    p.query_class.push_back(static_cast<std::uint8_t>(random() % 3));
    p.listed.push_back(c.some_listed ? random() % 2 : 1);
  }
  p.room = c.removed_share == 1 ? *std::max_element(c.lengths.begin(), c.lengths.end()) : 5;
  p.lists.assign(static_cast<std::size_t>(c.heads * n * p.room), no_key);
  for (std::int64_t h = 0; h < c.heads; ++h)
    for (std::size_t b = 0; b < c.lengths.size(); ++b)
      for (std::int64_t i = 0; i < c.lengths[b]; ++i) {
        std::vector<std::int32_t> keys(static_cast<std::size_t>(c.lengths[b]));
        std::iota(keys.begin(), keys.end(), 0);
        std::shuffle(keys.begin(), keys.end(), random);
        std::size_t count = c.removed_share == 1 ? (i % 2 == 0 ? keys.size() : 0) : random() % 6;
        if (c.removed_share == 0) count = 0;
        std::copy_n(keys.begin(), std::min(count, keys.size()),
                    p.lists.begin() + (h * n + p.offsets[b] + i) * p.room);
      }
  return p;
}

AttentionRequest request_of(const Problem& p, const Case& c) {
  AttentionRequest request;
  request.row_removed = {p.lists.data(), p.room};
  request.change = c.change;
  request.columns = request.statistics = true;
  request.rows = c.rows;
  if (c.some_listed) request.rows.listed = p.listed.data();
  return request;
}

AttentionResult run(const Path& path, const Problem& p, const AttentionRequest& request) {
  if (path.kernels == nullptr) return attention(Backend::aten, p.q, p.k, p.v, p.layout(), request);
  AttentionResult result{at::empty({p.q.size(0), p.q.size(1) * p.q.size(2)}, p.q.options()),
                         prepare_observation(p.q.size(1), p.layout(), request)};
  begin_observation(p.layout(), request, result.observation);
  attention_cpu(*path.kernels, p.q, p.k, p.v, p.layout(), request, result.output, result.observation);
  return result;
}

using Doubles = std::vector<double>;

Doubles softmax_of(const Doubles& scores) {
  const double max = *std::max_element(scores.begin(), scores.end());
  Doubles row;
  for (const double score : scores) row.push_back(max == -INFINITY ? 0 : std::exp(score - max));
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  for (double& value : row) value = sum == 0 ? 0 : value / sum;
  return row;
}

std::vector<std::int32_t> sorted_keys(const Doubles& row, std::vector<std::int32_t> keys, std::int64_t room,
                                      double sign) {
  std::stable_sort(keys.begin(), keys.end(),
                   [&](std::int32_t a, std::int32_t b) { return sign * row[a] > sign * row[b]; });
  keys.resize(static_cast<std::size_t>(room), no_key);
  return keys;
}

// The definition: f A_ij above the mean of f A_ik over the others that compete, by epsilon and the guard.
std::vector<std::int32_t> candidates(const Doubles& row, const RowRequest& rows, std::int64_t self,
                                     const std::vector<std::int32_t>& listed) {
  std::vector<std::int32_t> found;
  const double f = rows.on_sums ? static_cast<double>(row.size()) : 1;
  for (const std::int32_t key : listed) {
    double others = 0, count = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (static_cast<std::int32_t>(k) == key || (rows.without_self && static_cast<std::int64_t>(k) == self))
        continue;
      others += f * row[k];
      ++count;
    }
    const double value = f * row[key], bound = others / count + rows.epsilon;
    if (rows.every_key || (count > 0 && value - bound > 1e-6 * std::max(value, bound))) found.push_back(key);
  }
  return found;
}

struct Expected {
  at::Tensor output, column_used, last_row, changed_share, row_most, row_least;
  std::int64_t empty_rows = 0;
};

// One query of one head: `values` [S, D] of its key head.
void expect_row(const Case& c, const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i,
                const Doubles& scores, const at::Tensor& values, Expected& e) {
  const std::int64_t n = p.offsets.back(), token = p.offsets[b] + i;
  const auto keys = static_cast<std::int64_t>(scores.size());
  const Doubles raw = softmax_of(scores);
  Doubles used = raw, changed = scores, weights;
  std::vector<std::uint8_t> gone(scores.size(), 0);
  double share = 0;
  for (std::int64_t r = 0; r < p.room; ++r) {
    const std::int32_t key = p.lists[(h * n + token) * p.room + r];
    if (key == no_key) continue;
    gone[key] = 1;
    share += raw[key];
  }
  for (std::int64_t j = 0; j < keys; ++j)
    if (gone[j] != 0)
      changed[j] = c.change.action == KeyAction::remove ? -INFINITY : scores[j] + std::log(c.change.eta);
  if (c.change.action == KeyAction::remove || c.change.action == KeyAction::scale) used = softmax_of(changed);
  e.empty_rows += std::all_of(used.begin(), used.end(), [](double a) { return a == 0; }) ? 1 : 0;
  at::Tensor own = values.clone();
  for (std::int64_t j = 0; j < keys; ++j)
    if (gone[j] != 0 && c.change.action == KeyAction::value_zero) own[j].zero_();
  if (c.change.action == KeyAction::value_mean)
    for (std::int64_t j = 0; j < keys; ++j)
      if (gone[j] != 0) own[j].copy_(values.mean(0));
  const at::Tensor used_row = at::tensor(used, at::TensorOptions(at::kDouble));
  e.output[token].narrow(0, h * values.size(1), values.size(1)).copy_(at::matmul(used_row, own));
  e.column_used[h].narrow(0, p.offsets[b], keys).add_(used_row);
  e.changed_share[h][token] = share;
  const Doubles& ranked = c.rows.as_used ? used : raw;
  std::vector<std::int32_t> listed;
  for (std::int64_t j = 0; j < keys; ++j)
    if ((!c.rows.without_self || j != i) && (!c.some_listed || p.listed[p.offsets[b] + j] != 0))
      listed.push_back(static_cast<std::int32_t>(j));
  e.row_most[h][token].copy_(
      at::tensor(sorted_keys(ranked, candidates(ranked, c.rows, i, listed), c.rows.most, 1)));
  e.row_least[h][token].copy_(at::tensor(sorted_keys(ranked, listed, c.rows.least, -1)));
  if (i == keys - 1)
    e.last_row[h].narrow(0, p.offsets[b], keys).copy_(at::tensor(ranked, at::TensorOptions(at::kDouble)));
}

Expected reference(const Case& c, const Problem& p) {
  const std::int64_t n = p.offsets.back();
  const at::TensorOptions f64(at::kDouble);
  Expected e{at::zeros({n, c.heads * c.width}, f64),
             at::zeros({c.heads, n}, f64),
             at::zeros({c.heads, n}, f64),
             at::zeros({c.heads, n}, f64),
             at::full({c.heads, n, c.rows.most}, no_key, at::kInt),
             at::full({c.heads, n, c.rows.least}, no_key, at::kInt)};
  for (std::size_t b = 0; b < c.lengths.size(); ++b)
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const auto own = [&](const at::Tensor& t, std::int64_t head) {
        return t.narrow(0, p.offsets[b], c.lengths[b]).select(1, head).to(at::kDouble);
      };
      const std::int64_t kv = h / (c.heads / c.kv_heads);
      const at::Tensor scores =
          (at::matmul(own(p.q, h), own(p.k, kv).t()) / std::sqrt(static_cast<double>(c.width))).contiguous();
      for (std::int64_t i = 0; i < c.lengths[b]; ++i) {
        const double* row = scores.data_ptr<double>() + i * c.lengths[b];
        expect_row(c, p, static_cast<std::int64_t>(b), h, i, Doubles(row, row + c.lengths[b]), own(p.v, kv),
                   e);
      }
    }
  return e;
}

std::vector<Case> cases() {
  const KeyChange scale{KeyAction::scale, 0.2}, large{KeyAction::scale, 30};
  RowRequest all{.most = 4, .least = 6, .last = true, .changed_share = true};
  const auto with = [&](auto change) {
    RowRequest rows = all;
    change(rows);
    return rows;
  };
  const RowRequest used = with([](RowRequest& r) { r.as_used = true; });
  return {
      {{1}, 1, 1, 8, 0.5, {}, all, false},
      {{2, 5}, 4, 2, 16, 0.5, {}, all, false},
      {{65, 3, 17}, 6, 3, 33, 0.5, {}, all, true},
      {{50, 31}, 4, 2, 12, 0.5, {}, used, false},
      {{33, 4}, 2, 1, 9, 1, {}, used, false},
      {{40}, 2, 2, 16, 0, {}, used, false},
      {{97}, 2, 1, 64, 0.5, {}, with([](RowRequest& r) { r.without_self = true; }), true},
      {{20, 1, 2}, 2, 1, 8, 0.5, {}, with([](RowRequest& r) { r.without_self = r.every_key = true; }), false},
      {{49}, 2, 2, 20, 0.5, scale, with([](RowRequest& r) { r.epsilon = 2; }), false},
      {{70}, 2, 1, 16, 1, large, used, false},
      {{30}, 2, 1, 16, 0.5, {KeyAction::value_zero}, with([](RowRequest& r) { r.on_sums = false; }), false},
      {{48},
       2,
       1,
       7,
       0.5,
       {KeyAction::value_mean},
       with([](RowRequest& r) { r.epsilon = 0.05, r.on_sums = false; }),
       false},
      {{31}, 2, 2, 5, 1, {KeyAction::value_mean}, used, false},
      // long enough for the quick look at parts of a row
      {{300, 257}, 1, 1, 16, 0.5, {}, with([](RowRequest& r) { r.without_self = true; }), false},
      {{520}, 1, 1, 2, 0.5, {}, with([](RowRequest& r) { r.most = 12, r.epsilon = 1; }), false},
      {{260}, 1, 1, 1, 0, {}, with([](RowRequest& r) { r.most = 60; }), true},
      {{15},
       1,
       1,
       5,
       0.5,
       {},
       with([](RowRequest& r) { r.most = 40, r.least = 40, r.every_key = true; }),
       true}};
}

class AttentionRows : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, AttentionRows, ::testing::ValuesIn(paths()),
                         [](const auto& path) { return path.param.name; });

TEST_P(AttentionRows, EqualPlainLoops) {
  unsigned seed = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    const Problem p = make_problem(c, GetParam().storage, ++seed);
    const AttentionResult result = run(GetParam(), p, request_of(p, c));
    const Expected e = reference(c, p);
    const AttentionObservation& seen = result.observation;
    // Exact scores of at most 16; sums of at most 520 float32 exponentials (see the bounds beside).
    const double error = 2e-5, rounded = GetParam().storage == at::kBFloat16 ? std::exp2(-7) : 0;
    EXPECT_TRUE(near(result.output, e.output, 6 * error + 4 * rounded, rounded));
    EXPECT_TRUE(near(seen.column_used, e.column_used, error, error));
    EXPECT_TRUE(near(seen.changed_share, e.changed_share, error));
    EXPECT_TRUE(near(seen.last_row, e.last_row, error, error));
    EXPECT_TRUE(at::equal(seen.row_most, e.row_most));
    EXPECT_TRUE(at::equal(seen.row_least, e.row_least));
    EXPECT_EQ(std::accumulate(seen.empty_rows.begin(), seen.empty_rows.end(), std::int64_t{0}), e.empty_rows);
  }
}

TEST_P(AttentionRows, EmptyListsLeaveTheOutputToTheBit) {
  const Case c{{130, 7}, 2, 2, 32, 0, {}, {.most = 3, .last = true, .changed_share = true}, false};
  const Problem p = make_problem(c, GetParam().storage, 3);
  const AttentionResult empty = run(GetParam(), p, request_of(p, c));
  EXPECT_TRUE(at::equal(empty.output, run(GetParam(), p, {}).output));
  EXPECT_TRUE(near(empty.observation.column_used, empty.observation.column_sum.sum(0), 0, 1e-6));
  EXPECT_FALSE(empty.observation.changed_share.any().item<bool>());
}

// Of two queries one loses keys: the other's bits stay.
TEST_P(AttentionRows, AQueryWithoutAListKeepsItsBits) {
  const Case c{{60}, 1, 1, 16, 1, {}, {}, false};
  const Problem p = make_problem(c, GetParam().storage, 4);
  const at::Tensor changed = run(GetParam(), p, request_of(p, c)).output,
                   plain = run(GetParam(), p, {}).output;
  for (std::int64_t i = 1; i < 60; i += 2) EXPECT_TRUE(at::equal(changed[i], plain[i]));
  for (std::int64_t i = 0; i < 60; i += 2) EXPECT_FALSE(changed[i].any().item<bool>());
}

// The same list for all queries is the same as keys removed for all.
TEST_P(AttentionRows, OneListForAllIsAColumn) {
  const Case c{{65}, 2, 1, 16, 0, {}, {.changed_share = true}, false};
  Problem p = make_problem(c, GetParam().storage, 5);
  std::vector<std::uint8_t> removed(2 * 65, 0);
  for (std::int64_t h = 0; h < 2; ++h) {
    removed[h * 65 + 7] = removed[h * 65 + 40 + h] = 1;
    for (std::int64_t i = 0; i < 65; ++i) {
      p.lists[(h * 65 + i) * p.room] = static_cast<std::int32_t>(40 + h);
      p.lists[(h * 65 + i) * p.room + 1] = 7;
    }
  }
  const AttentionResult rows = run(GetParam(), p, request_of(p, c));
  AttentionRequest columns = request_of(p, c);
  columns.row_removed = {};
  columns.removed = removed.data();
  const AttentionResult whole = run(GetParam(), p, columns);
  const double rounded = GetParam().storage == at::kBFloat16 ? std::exp2(-7) : 0;
  EXPECT_TRUE(near(rows.output, whole.output, 1e-6 + rounded, rounded));
  EXPECT_TRUE(near(rows.observation.column_used, whole.observation.column_used, 1e-6, 1e-5));
  EXPECT_TRUE(at::equal(rows.observation.changed_share, whole.observation.changed_share));
}

TEST_P(AttentionRows, KeptKeysAreExactHoweverFarBelowTheRemovedOnes) {
  for (const double gap : {10.0, 59.0, 61.0, 90.0, 4000.0}) {
    const std::int64_t keys = 37;
    Problem p = make_problem({{keys}, 1, 1, 1, 0, {}, {}, false}, GetParam().storage, 8);
    p.q = at::ones({keys, 1, 1}).to(GetParam().storage);  // the score of a key is its value
    p.k[11] = gap;
    for (std::int64_t i = 0; i < keys; ++i) p.lists[i * p.room] = 11;
    AttentionRequest request;
    request.row_removed = {p.lists.data(), p.room};
    request.columns = true;
    const AttentionResult ours = run(GetParam(), p, request);
    Doubles scores;
    for (std::int64_t j = 0; j < keys; ++j) scores.push_back(p.k[j].item<double>());
    scores[11] = -INFINITY;
    const at::Tensor right = at::tensor(softmax_of(scores), at::TensorOptions(at::kDouble)) * double(keys);
    EXPECT_TRUE(near(ours.observation.column_used[0], right, 1e-6, 1e-4)) << gap;
    EXPECT_EQ(ours.observation.column_used[0][11].item<float>(), 0);
  }
}

TEST_P(AttentionRows, BitsDoNotDependOnTheThreads) {
  const Case c{{70, 33, 5, 160},
               6,
               2,
               24,
               0.5,
               {},
               {.most = 5, .least = 5, .as_used = true, .changed_share = true},
               true};
  const Problem p = make_problem(c, GetParam().storage, 9);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const AttentionResult one = run(GetParam(), p, request_of(p, c));
  omp_set_num_threads(3);
  const AttentionResult many = run(GetParam(), p, request_of(p, c));
  omp_set_num_threads(before);
  EXPECT_TRUE(at::equal(one.output, many.output));
  EXPECT_TRUE(at::equal(one.observation.row_most, many.observation.row_most));
  EXPECT_TRUE(at::equal(one.observation.row_least, many.observation.row_least));
  EXPECT_TRUE(at::equal(one.observation.changed_share, many.observation.changed_share));
}

TEST(AttentionRowRequests, ThatContradictThemselvesAreRefused) {
  const Problem p = make_problem({{5}, 1, 1, 8, 0.5, {}, {}, false}, at::kFloat, 1);
  const std::vector<std::uint8_t> removed(5, 0);
  AttentionRequest request;
  request.removed = removed.data();
  request.row_removed = {p.lists.data(), p.room};
  EXPECT_THROW(attention(Backend::cpu, p.q, p.k, p.v, p.layout(), request), c10::Error);
  request = {};
  request.rows.most = 2;
  AttentionLayout causal = p.layout();
  causal.causal = true;
  EXPECT_THROW(attention(Backend::cpu, p.q, p.k, p.v, causal, request), c10::Error);
}

}  // namespace
}  // namespace sinkscope
