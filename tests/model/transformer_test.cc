#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::Golden;
using testing::near;
using testing::near_columns;

Transformer load(const std::string& fixture, bool plain_operations = false,
                 at::ScalarType dtype = at::kFloat) {
  TransformerOptions options;
  options.dtype = dtype;
  options.plain_operations = plain_operations;
  return {std::make_shared<const Checkpoint>(Checkpoint::open(testing::golden_dir(fixture))), options};
}

TokenBatch batch_of(const std::vector<std::vector<std::int32_t>>& rows) {
  TokenBatch batch;
  for (const auto& row : rows) {
    batch.ids.insert(batch.ids.end(), row.begin(), row.end());
    batch.offsets.push_back(batch.tokens());
  }
  batch.query_class.assign(batch.ids.size(), 0);
  return batch;
}

std::vector<std::vector<std::int32_t>> rows_of(const at::Tensor& ids) {
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(ids.size(0)));
  for (std::int64_t b = 0; b < ids.size(0); ++b)
    for (std::int64_t i = 0; i < ids.size(1); ++i) rows[b].push_back(ids[b][i].item<std::int32_t>());
  return rows;
}

// [.., N] of B equal rows -> [B, .., S]
at::Tensor split_rows(const at::Tensor& flat, std::int64_t rows) {
  std::vector<std::int64_t> shape = flat.sizes().vec();
  shape.back() = rows;
  shape.push_back(flat.size(-1) / rows);
  return flat.reshape(shape).movedim(-2, 0);
}

class GoldenForward : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenForward, EqualsTheFixture) {
  const auto& [fixture, plain_operations] = GetParam();
  const Golden golden(fixture);
  const Transformer model = load(fixture, plain_operations);
  const TokenBatch batch = batch_of(rows_of(golden.tensor("forward.input_ids")));
  const ForwardResult result =
      model.forward({.tokens = batch, .capture = Capture::full, .maps = {{0, 1}}, .hidden_norms = true});
  const std::int64_t rows = batch.sequences();
  EXPECT_TRUE(near(split_rows(result.logits.transpose(0, 1), rows).transpose(1, 2),
                   golden.tensor("forward.logits"), 2e-4));
  EXPECT_TRUE(near_columns(split_rows(result.observation.column_sum.sum(0), rows),
                           golden.tensor("forward.column_sum")));
  EXPECT_TRUE(near(split_rows(result.hidden_norm, rows), golden.tensor("forward.hidden_norm"), 2e-4));
  const at::Tensor maps = golden.tensor("forward.attention_layer0");
  for (std::int64_t b = 0; b < rows; ++b)
    EXPECT_TRUE(near(result.observation.maps[b].at({0, 1}), maps[b][1], 1e-4));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenForward,
                         ::testing::Combine(::testing::Values("llada-random", "mmada-random"),
                                            ::testing::Bool()));

// What a row of a ragged batch sees is its own: positions count from its first token and no pad exists.
TEST(Transformer, EveryRowOfARaggedBatchEqualsItsRunAlone) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Transformer model = load("llada-random", false, dtype);
    const std::vector<std::vector<std::int32_t>> rows{{5, 6, 7}, {9, 8, 7, 6, 5, 4, 3, 2, 299}, {11}};
    const TokenBatch together = batch_of(rows);
    const ForwardResult joint = model.forward({.tokens = together, .capture = Capture::columns});
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const TokenBatch alone = batch_of({rows[b]});
      const ForwardResult single = model.forward({.tokens = alone, .capture = Capture::columns});
      const std::int64_t first = together.offsets[b];
      EXPECT_TRUE(at::equal(joint.logits.narrow(0, first, alone.tokens()), single.logits)) << "row " << b;
      EXPECT_TRUE(at::equal(joint.observation.column_sum.narrow(3, first, alone.tokens()),
                            single.observation.column_sum));
    }
  }
}

TEST(Transformer, LogitsOfSomeTokensAreThoseOfAll) {
  const Transformer model = load("llada-random");
  const TokenBatch batch = batch_of({{5, 6, 7, 8}, {9, 10, 11}});
  const at::Tensor all = model.forward({.tokens = batch}).logits;
  const at::Tensor some =
      model.forward({.tokens = batch, .wanted = std::vector<std::int64_t>{1, 3, 5}}).logits;
  const at::Tensor expected = at::index_select(all, 0, at::tensor(std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_TRUE(near(some, expected, 1e-5));
}

TEST(Transformer, LookingChangesNothing) {
  const Transformer model = load("llada-random");
  const TokenBatch batch = batch_of({{5, 6, 7, 8, 299, 299}});
  const at::Tensor blind = model.forward({.tokens = batch}).logits;
  const at::Tensor seen =
      model.forward({.tokens = batch, .capture = Capture::full, .maps = {{2, 3}}, .hidden_norms = true})
          .logits;
  EXPECT_TRUE(at::equal(blind, seen));
}

TEST(Transformer, RemovingNothingIsTheSameToTheBit) {
  const Transformer model = load("llada-random");
  const TokenBatch batch = batch_of({{5, 6, 7, 8, 299, 299}});
  const std::vector<std::uint8_t> removed(3 * 4 * 6, 0);
  const at::Tensor plain = model.forward({.tokens = batch}).logits;
  EXPECT_TRUE(at::equal(plain, model.forward({.tokens = batch, .removed = removed.data()}).logits));
}

TEST(Transformer, RemovingEveryKeyGivesFiniteLogitsAndCountsTheRows) {
  for (const bool plain_operations : {false, true}) {
    const Transformer model = load("llada-random", plain_operations);
    const TokenBatch batch = batch_of({{5, 6, 7, 8, 299, 299}});
    const std::vector<std::uint8_t> removed(3 * 4 * 6, 1);
    const ForwardResult result =
        model.forward({.tokens = batch, .capture = Capture::columns, .removed = removed.data()});
    EXPECT_TRUE(result.logits.isfinite().all().item<bool>());
    EXPECT_EQ(result.observation.empty_rows[0], 3 * 4 * 6);
    EXPECT_EQ(result.observation.column_used.abs().sum().item<float>(), 0);
  }
}

// Root mean square of the difference over that of the truth.
double relative_error(const at::Tensor& value, const at::Tensor& truth) {
  return ((value.to(at::kFloat) - truth).norm() / truth.norm()).item<double>();
}

TEST(Transformer, Bfloat16StaysCloseToFloat32) {
  const Golden golden("llada-random");
  const TokenBatch batch = batch_of(rows_of(golden.tensor("forward.input_ids")));
  const at::Tensor truth = golden.tensor("forward.logits").reshape({batch.tokens(), -1});
  const at::Tensor kernels = load("llada-random", false, at::kBFloat16).forward({.tokens = batch}).logits;
  const at::Tensor plain = load("llada-random", true, at::kBFloat16).forward({.tokens = batch}).logits;
  EXPECT_EQ(kernels.scalar_type(), at::kBFloat16);
  // Random weights make sharp attention, which amplifies roundings: the measure is what libtorch's own
  // operations with the same cast points lose (6 % here), not a number of ours.
  EXPECT_LT(relative_error(kernels, truth), 1.25 * relative_error(plain, truth));
  EXPECT_LT(relative_error(kernels, truth), 0.1);
  EXPECT_GT(relative_error(kernels, truth), 1e-4);  // it is bfloat16 indeed
}

TEST(Transformer, IdsOutsideTheEmbeddingAreNamed) {
  const Transformer model = load("llada-random");
  for (const std::int32_t id : {-1, 300, 2147483647}) {
    const TokenBatch batch = batch_of({{5, id}});
    EXPECT_THROW(model.forward({.tokens = batch}), UsageError) << id;
  }
}

TEST(Transformer, Float16OnTheCpuIsRefused) {
  EXPECT_THROW(load("llada-random", false, at::kHalf), UsageError);
}

}  // namespace
}  // namespace sinkscope
