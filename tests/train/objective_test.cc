#include "train/objective.h"

#include <gmock/gmock.h>

#include <numeric>

#include "train/small_run.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

constexpr std::int32_t mask_id = 99;

template <typename T>
std::vector<T> values(const at::Tensor& tensor) {
  return {tensor.data_ptr<T>(), tensor.data_ptr<T>() + tensor.numel()};
}

TrainingBatch batch_of(std::int64_t rows, std::int64_t length) {
  TrainingBatch batch{rows, length, std::vector<std::int32_t>(static_cast<std::size_t>(rows * length)), {}};
  std::iota(batch.ids.begin(), batch.ids.end(), 0);
  for (std::int32_t& id : batch.ids) id %= 50;
  batch.predictable.assign(batch.ids.size(), 1);
  return batch;
}

TEST(Objective, AutoregressionPredictsEveryTokenFromTheOneBeforeIt) {
  SmallRun run;
  run.config["objective"] = "autoregressive";
  TrainingBatch batch = batch_of(2, 3);
  batch.predictable = {1, 0, 1, 1, 1, 1};
  const TrainingTask task = make_task(batch, run.read(), -1, 0, 0.5);
  EXPECT_THAT(values<std::int64_t>(task.ids), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<std::int64_t>(task.predicted.rows), ElementsAre(1, 3, 4));
  EXPECT_THAT(values<std::int64_t>(task.predicted.targets), ElementsAre(2, 4, 5));
  EXPECT_THAT(values<float>(task.predicted.weights), ::testing::Each(::testing::FloatEq(0.5F / 3)));
}

// Of a prefix of n tokens the first n - 1 predictions go: those of tokens that their predictors see.
TEST(Objective, APrefixIsNotAskedFor) {
  SmallRun run;
  run.config["objective"] = "prefix-lm";
  run.config["prefix"] = 3;
  const TrainingTask task = make_task(batch_of(2, 5), run.read(), -1, 0, 1);
  EXPECT_THAT(values<std::int64_t>(task.predicted.rows), ElementsAre(2, 3, 7, 8));
  EXPECT_THAT(values<std::int64_t>(task.predicted.targets), ElementsAre(3, 4, 8, 9));
  EXPECT_THAT(values<float>(task.predicted.weights), ::testing::Each(::testing::FloatEq(0.25F)));
  EXPECT_EQ(make_task(batch_of(2, 3), run.read(), -1, 0, 1).predicted.rows.numel(), 0);
}

TEST(Objective, DiffusionMasksWhatItPredictsWithTheWeightOfItsRow) {
  const SmallRun run;
  const TrainConfig config = run.read();
  const TrainingBatch batch = batch_of(4, 64);
  const TrainingTask task = make_task(batch, config, mask_id, 3, 1);
  const auto ids = values<std::int64_t>(task.ids);
  const auto rows = values<std::int64_t>(task.predicted.rows);
  const auto targets = values<std::int64_t>(task.predicted.targets);
  const auto weights = values<float>(task.predicted.weights);
  std::size_t masks = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask_id) {
      EXPECT_EQ(ids[i], batch.ids[i]);
    } else {
      ++masks;
    }
  }
  ASSERT_EQ(rows.size(), masks);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(ids[static_cast<std::size_t>(rows[i])], mask_id);
    EXPECT_EQ(targets[i], batch.ids[static_cast<std::size_t>(rows[i])]);
    if (i > 0 && rows[i] / 64 == rows[i - 1] / 64) {
      EXPECT_EQ(weights[i], weights[i - 1]);
    }
  }
}

// Over many batches each token is masked half the time, and the weights make every token count once.
TEST(Objective, DiffusionIsUnbiased) {
  const SmallRun run;
  const TrainConfig config = run.read();
  const TrainingBatch batch = batch_of(8, 32);
  double masked = 0, weight = 0;
  constexpr int batches = 400;
  for (int number = 0; number < batches; ++number) {
    const TrainingTask task = make_task(batch, config, mask_id, number, 1);
    masked += static_cast<double>(task.predicted.rows.numel()) / (8 * 32);
    for (const float w : values<float>(task.predicted.weights)) weight += static_cast<double>(w);
  }
  EXPECT_NEAR(masked / batches, 0.5, 0.01);
  EXPECT_NEAR(weight / batches, 1, 0.1);  // rows with few masks have large weights
}

TEST(Objective, AnswersWeighTheSameWhateverTheirLength) {
  SmallRun run;
  run.config["data"]["answer_only"] = true;
  const TrainConfig config = run.read();
  TrainingBatch batch = batch_of(2, 32);
  for (std::size_t i = 0; i < 32; ++i) batch.predictable[i] = i < 4 ? 1 : 0;  // four of the first row
  double first = 0, second = 0;
  for (int number = 0; number < 4000; ++number) {
    const TrainingTask task = make_task(batch, config, mask_id, number, 1);
    const auto rows = values<std::int64_t>(task.predicted.rows);
    const auto weights = values<float>(task.predicted.weights);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(batch.predictable[static_cast<std::size_t>(rows[i])], 1);
      (rows[i] < 32 ? first : second) += static_cast<double>(weights[i]) / 4000;
    }
  }
  EXPECT_NEAR(first, 0.5, 0.06);
  EXPECT_NEAR(second, 0.5, 0.06);
}

TEST(Objective, NoiseIsAFunctionOfTheNumberAndTheSeed) {
  SmallRun run;
  const TrainingBatch batch = batch_of(4, 64);
  const auto ids = [&](std::int64_t number) {
    return values<std::int64_t>(make_task(batch, run.read(), mask_id, number, 1).ids);
  };
  const auto before = ids(5);
  EXPECT_EQ(ids(5), before);
  EXPECT_NE(ids(6), before);
  run.config["seed"] = 9;
  EXPECT_NE(ids(5), before);
}

}  // namespace
}  // namespace sinkscope
