#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "support/small_model.h"

namespace sinkscope {
namespace {

using testing::batch_of;
using testing::Golden;
using testing::load;
using testing::near;
using testing::near_columns;
using testing::rows_of;

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
                         ::testing::Combine(::testing::Values("llada-random", "mmada-random", "dream-random",
                                                              "llama-random", "qwen2-random"),
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

// What nobody reads is not computed, and what is read does not show it: observed or not, alone or in a batch,
// by the fused head or from the hidden rows.
TEST(Transformer, WantedRowsAreThoseOfTheWholePass) {
  for (const bool plain_operations : {false, true}) {
    const Transformer model = load("llada-random", plain_operations);
    const TokenBatch batch = batch_of({{5, 6, 7, 8, 299}, {9, 10, 11}, {12, 299}});
    const ForwardResult all = model.forward({.tokens = batch, .capture = Capture::full});
    for (const std::vector<std::int64_t>& wanted : std::vector<std::vector<std::int64_t>>{
             {}, {0}, {4, 9}, {1, 2, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}})
      for (const Capture capture : {Capture::none, Capture::columns, Capture::full}) {
        const at::Tensor expected =
            at::index_select(all.logits, 0, at::tensor(wanted, at::TensorOptions(at::kLong)));
        const ForwardResult some = model.forward({.tokens = batch, .wanted = wanted, .capture = capture});
        EXPECT_TRUE(near(some.logits, expected, 1e-5));
        if (capture != Capture::none) {
          EXPECT_TRUE(at::equal(some.observation.column_sum, all.observation.column_sum));
        }
        if (capture == Capture::full) {
          EXPECT_TRUE(at::equal(some.observation.value_norm, all.observation.value_norm));
        }
        const ForwardResult hidden =
            model.forward({.tokens = batch, .wanted = wanted, .head = Head::none, .capture = capture});
        if (!wanted.empty()) {
          EXPECT_TRUE(near(model.logits_of(hidden.hidden), expected, 1e-5));
        }
        const ForwardResult reduced =
            model.forward({.tokens = batch, .wanted = wanted, .head = Head::vocabulary, .capture = capture});
        ASSERT_EQ(reduced.vocabulary.token.size(), wanted.size());
        for (std::size_t r = 0; r < wanted.size(); ++r) {
          EXPECT_EQ(reduced.vocabulary.token[r], expected[r].argmax().item<std::int32_t>());
          const double share =
              std::exp(static_cast<double>(reduced.vocabulary.logit[r] - reduced.vocabulary.max[r])) /
              reduced.vocabulary.sum_exp[r];
          EXPECT_NEAR(share, at::softmax(expected[r], 0).max().item<double>(), 1e-5);
        }
      }
  }
}

// One workspace for passes of any size, one after the other.
TEST(Transformer, AWorkspaceIsUsedAgain) {
  const Transformer model = load("llada-random");
  ForwardWorkspace workspace;
  for (const std::vector<std::int32_t>& row :
       std::vector<std::vector<std::int32_t>>{{5, 6, 7}, {9, 8, 7, 6, 5, 4, 3, 2}, {11}, {5, 6, 7}}) {
    const TokenBatch batch = batch_of({row});
    const ForwardResult fresh = model.forward({.tokens = batch, .capture = Capture::full});
    const ForwardResult again = model.forward({.tokens = batch, .capture = Capture::full}, workspace);
    EXPECT_TRUE(at::equal(fresh.logits, again.logits));
    EXPECT_TRUE(at::equal(fresh.observation.column_sum, again.observation.column_sum));
  }
}

// The random fixtures make sharp attention, which amplifies every rounding; a trained model is judged in
// docs/numerics.md. Here: 8-bit weights run everywhere and stay within reach of float32.
TEST(Transformer, Int8StaysInReachOfFloat32) {
  TransformerOptions options;
  options.weights = WeightFormat::int8;
  const auto checkpoint = std::make_shared<const Checkpoint>(
      Checkpoint::open(std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "models" / "tiny-llada"));
  const Transformer quantised(checkpoint, options);
  const Transformer truth(checkpoint, {});
  const TokenBatch batch = batch_of({{5, 6, 7, 8, 100, 200, 300, 2047, 2047, 2047}});
  const at::Tensor exact = truth.forward({.tokens = batch}).logits;
  const at::Tensor rough = quantised.forward({.tokens = batch}).logits;
  EXPECT_LT(((rough - exact).norm() / exact.norm()).item<double>(), 0.1);
  EXPECT_GT((rough - exact).abs().max().item<double>(), 1e-3);
  EXPECT_EQ(quantised.weight_format(), WeightFormat::int8);
}

TEST(Transformer, Int8HasNoPlainVersion) {
  TransformerOptions options;
  options.weights = WeightFormat::int8;
  options.plain_operations = true;
  EXPECT_THROW(
      Transformer(std::make_shared<const Checkpoint>(Checkpoint::open(testing::golden_dir("llada-random"))),
                  options),
      UsageError);
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

// Even where the last block would compute for one token alone.
TEST(Transformer, EveryLayersHeadsAreHandedOut) {
  const Transformer model = load("tiny-llada");
  const ModelConfig& config = model.config();
  const TokenBatch batch = batch_of({{3, 1, 4, 1, 5}, {9, 2, 6}});
  const ForwardResult plain = model.forward({.tokens = batch, .capture = Capture::full});
  std::vector<std::int64_t> layers;
  ForwardRequest request{.tokens = batch, .wanted = std::vector<std::int64_t>{2}};
  request.look = [&](const HeadStates& states) {
    layers.push_back(states.layer);
    EXPECT_EQ(states.query.sizes(), at::IntArrayRef({8, config.heads, config.head_dim}));
    EXPECT_EQ(states.key.sizes(), at::IntArrayRef({8, config.kv_heads, config.head_dim}));
    const at::Tensor norms = states.value.to(at::kFloat).norm(2, -1).t();
    EXPECT_TRUE(near(norms, plain.observation.value_norm[states.layer], 1e-5));
  };
  const ForwardResult looked = model.forward(request);
  EXPECT_EQ(std::ssize(layers), config.layers);
  EXPECT_TRUE(std::is_sorted(layers.begin(), layers.end()));
  EXPECT_TRUE(near(looked.logits[0], plain.logits[2], 1e-5));
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
