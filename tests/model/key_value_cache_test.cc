// Passes over a part of a sequence against passes over all of it.
#include <ATen/ATen.h>
#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "support/small_model.h"

namespace sinkscope {
namespace {

using testing::batch_of;
using testing::load;
using testing::near;

std::vector<std::int32_t> some_ids(std::int64_t count, std::int32_t seed) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>((i * 37 + seed) % 290));
  return ids;
}

class KeptKeys : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Backends, KeptKeys, ::testing::Bool());

TEST_P(KeptKeys, ACausalSequenceInPiecesIsTheSameAsWhole) {
  const Transformer model = load("llama-random", GetParam());
  const std::vector<std::int32_t> a = some_ids(41, 1), b = some_ids(17, 5);
  const ForwardResult whole = model.forward({.tokens = batch_of({a, b}), .capture = Capture::columns});
  KeyValueCache cache(model.config(), at::kFloat, at::kCPU, {50, 17});
  ForwardWorkspace workspace;
  at::Tensor columns = at::zeros({3, 3, 4, 41});
  // pieces of a: 20, 1, 20; of b: 10, 7, nothing
  const std::vector<std::vector<std::pair<int, int>>> steps{
      {{0, 20}, {0, 10}}, {{20, 21}, {10, 17}}, {{21, 41}}};
  for (const auto& pieces : steps) {
    std::vector<std::vector<std::int32_t>> rows;
    CachedTokens cached{&cache, {}, {}};
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      const std::vector<std::int32_t>& all = s == 0 ? a : b;
      rows.emplace_back(all.begin() + pieces[s].first, all.begin() + pieces[s].second);
      cached.slots.push_back(static_cast<std::int64_t>(s));
      cached.first_positions.push_back(pieces[s].first);
    }
    const TokenBatch batch = batch_of(rows);
    const ForwardResult part =
        model.forward({.tokens = batch, .capture = Capture::columns, .cached = &cached}, workspace);
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      const std::int64_t from = (s == 0 ? 0 : 41) + pieces[s].first,
                         count = pieces[s].second - pieces[s].first;
      EXPECT_TRUE(
          near(part.logits.narrow(0, batch.offsets[s], count), whole.logits.narrow(0, from, count), 1e-4));
    }
    columns.narrow(3, 0, pieces[0].second).add_(part.observation.column_sum.narrow(3, 0, pieces[0].second));
  }
  EXPECT_EQ(cache.length(0), 41);
  EXPECT_EQ(cache.length(1), 17);
  EXPECT_TRUE(near(columns, whole.observation.column_sum.narrow(3, 0, 41), 1e-4));
}

// As long as no token changes, what is computed of a block is what the whole pass computes.
TEST_P(KeptKeys, ABidirectionalBlockSeesTheKeptKeysAround) {
  const Transformer model = load("dream-random", GetParam());
  const std::vector<std::int32_t> ids = some_ids(37, 3);
  KeyValueCache cache(model.config(), at::kFloat, at::kCPU, {37});
  ForwardWorkspace workspace;
  const CachedTokens whole_row{&cache, {0}, {0}};
  const ForwardResult whole =
      model.forward({.tokens = batch_of({ids}), .capture = Capture::full, .cached = &whole_row}, workspace);
  const at::Tensor logits = whole.logits.clone();
  const at::Tensor norms = whole.observation.value_norm.clone();
  for (const auto& [first, last] : {std::pair{10, 20}, {30, 37}, {0, 1}}) {
    const CachedTokens block{&cache, {0}, {first}};
    const TokenBatch batch = batch_of({{ids.begin() + first, ids.begin() + last}});
    const ForwardResult part =
        model.forward({.tokens = batch, .capture = Capture::full, .cached = &block}, workspace);
    EXPECT_TRUE(near(part.logits, logits.narrow(0, first, last - first), 1e-4)) << first;
    EXPECT_EQ(part.observation.column_sum.size(3), 37);
    EXPECT_NEAR(part.observation.column_sum.sum(at::IntArrayRef{0, 3})[0][0].item<double>(), last - first,
                1e-4);
    EXPECT_TRUE(near(part.observation.value_norm, norms, 1e-4));
  }
}

TEST(KeyValueCache, ForgetsFromAPositionOn) {
  const Transformer model = load("llama-random", false);
  KeyValueCache cache(model.config(), at::kFloat, at::kCPU, {9});
  const CachedTokens cached{&cache, {0}, {0}};
  ForwardWorkspace workspace;
  model.forward({.tokens = batch_of({some_ids(9, 1)}), .cached = &cached}, workspace);
  cache.truncate(0, 4);
  EXPECT_EQ(cache.length(0), 4);
  cache.truncate(0, 8);
  EXPECT_EQ(cache.length(0), 4);
  EXPECT_EQ(KeyValueCache::bytes(model.config(), at::kFloat, 9), 2 * 3 * 9 * 2 * 16 * 4);
}

TEST(KeyValueCache, PositionsThatDoNotFitAreRefused) {
  const Transformer model = load("llama-random", false);
  KeyValueCache cache(model.config(), at::kFloat, at::kCPU, {9});
  ForwardWorkspace workspace;
  for (const CachedTokens& cached :
       {CachedTokens{&cache, {0}, {1}}, CachedTokens{&cache, {1}, {0}}, CachedTokens{&cache, {0}, {-1}}})
    EXPECT_THROW(model.forward({.tokens = batch_of({some_ids(3, 1)}), .cached = &cached}, workspace),
                 UsageError);
  const CachedTokens cached{&cache, {0}, {0}};
  EXPECT_THROW(model.forward({.tokens = batch_of({some_ids(10, 1)}), .cached = &cached}, workspace),
               UsageError);
}

}  // namespace
}  // namespace sinkscope
