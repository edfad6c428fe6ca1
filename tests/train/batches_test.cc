#include "train/batches.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <map>

#include "train/small_run.h"

namespace sinkscope {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int32_t eos = 1;

class Batches : public ::testing::Test {
 protected:
  SmallRun run;
  const Tokenizer tokenizer = Tokenizer::load(run.folder / "tokenizer");

  TokenCache cache() const {
    const std::filesystem::path file = run.folder / "tokens.bin";
    write_token_cache({run.folder / "train.jsonl"}, {tokenizer, {}, {}, eos}, 0, file, {});
    return TokenCache(file);
  }
  // How often every text stands in the batches of an epoch.
  static std::map<std::vector<std::int32_t>, int> texts_of(BatchOrder& order, std::int64_t first) {
    std::map<std::vector<std::int32_t>, int> texts;
    for (std::int64_t number = first; number < first + order.batches_per_epoch(); ++number) {
      const TrainingBatch batch = order.batch(number);
      for (std::int64_t row = 0; row < batch.rows; ++row) {
        const auto begin = batch.ids.begin() + row * batch.length;
        ++texts[{begin, std::find(begin, begin + batch.length, eos)}];
      }
    }
    return texts;
  }
};

TEST_F(Batches, AnEpochHasEveryTextOnceAndTheNextOneAnotherOrder) {
  const TokenCache tokens = cache();
  const TrainConfig config = run.read();
  BatchOrder order(tokens, config, eos);
  EXPECT_EQ(order.batches_per_epoch(), 10);
  const auto texts = texts_of(order, 0);
  EXPECT_EQ(texts.size(), 40U);
  for (const auto& [ids, count] : texts) EXPECT_EQ(count, 1);
  EXPECT_EQ(texts_of(order, 10), texts);
  EXPECT_NE(order.batch(0).ids, order.batch(10).ids);
}

TEST_F(Batches, ABatchIsAFunctionOfItsNumber) {
  const TokenCache tokens = cache();
  const TrainConfig config = run.read();
  BatchOrder forward(tokens, config, eos), other(tokens, config, eos);
  std::vector<TrainingBatch> batches;
  for (int i = 0; i < 25; ++i) batches.push_back(forward.batch(i));
  for (const int i : {24, 3, 17, 0}) {
    EXPECT_EQ(other.batch(i).ids, batches[static_cast<std::size_t>(i)].ids) << i;
    EXPECT_EQ(other.batch(i).predictable, batches[static_cast<std::size_t>(i)].predictable) << i;
  }
}

TEST_F(Batches, RowsAreFilledWithEndTokensThatOnlyDiffusionPredicts) {
  const TokenCache tokens = cache();
  run.config["data"]["fill"] = 9;
  const TrainConfig diffusion = run.read();
  const TrainingBatch filled = BatchOrder(tokens, diffusion, eos).batch(0);
  EXPECT_EQ(filled.length % 8, 0);
  EXPECT_LE(filled.length, diffusion.context);
  EXPECT_THAT(filled.predictable, Each(1));
  run.config["data"].erase("fill");
  run.config["objective"] = "autoregressive";
  const TrainConfig causal = run.read();
  const TrainingBatch batch = BatchOrder(tokens, causal, eos).batch(0);
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    const auto begin = batch.ids.begin() + row * batch.length;
    const std::int64_t end = std::find(begin, begin + batch.length, eos) - begin;
    for (std::int64_t i = 0; i < batch.length; ++i)
      EXPECT_EQ(batch.predictable[static_cast<std::size_t>(row * batch.length + i)], i <= end ? 1 : 0);
  }
}

TEST_F(Batches, AnswerOnlyLeavesPromptsAlone) {
  const TokenCache tokens = cache();
  run.config["data"]["answer_only"] = true;
  run.config["objective"] = "autoregressive";
  const TrainConfig config = run.read();
  BatchOrder order(tokens, config, eos);
  for (int number = 0; number < 10; ++number) {
    const TrainingBatch batch = order.batch(number);
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      std::vector<std::int32_t> predicted;
      for (std::int64_t i = row * batch.length; i < (row + 1) * batch.length; ++i)
        if (batch.predictable[static_cast<std::size_t>(i)] != 0)
          predicted.push_back(batch.ids[static_cast<std::size_t>(i)]);
      const std::string text = tokenizer.decode(predicted);
      EXPECT_TRUE(text.find('+') == std::string::npos && text.find('=') == std::string::npos) << text;
    }
  }
}

TEST_F(Batches, JoinedPiecesAreConsecutiveTokensOfTheTexts) {
  const TokenCache tokens = cache();
  run.config["data"]["layout"] = "joined";
  const TrainConfig config = run.read();
  BatchOrder order(tokens, config, eos);
  const std::span<const std::int32_t> all = tokens.ids();
  std::vector<int> seen(all.size(), 0);
  for (std::int64_t number = 0; number < order.batches_per_epoch(); ++number) {
    const TrainingBatch batch = order.batch(number);
    ASSERT_EQ(batch.length, config.context);
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      const auto piece = std::span(batch.ids).subspan(static_cast<std::size_t>(row * batch.length),
                                                      static_cast<std::size_t>(batch.length));
      const auto found = std::search(all.begin(), all.end(), piece.begin(), piece.end());
      ASSERT_NE(found, all.end());
      for (std::ptrdiff_t i = 0; i < batch.length; ++i)
        ++seen[static_cast<std::size_t>(found - all.begin() + i)];
    }
  }
  EXPECT_LE(*std::max_element(seen.begin(), seen.end()), 1);
}

TEST_F(Batches, TooLittleDataIsSaid) {
  const TokenCache tokens = cache();
  run.config["batch"] = 41;
  const TrainConfig config = run.read();
  EXPECT_THAT([&] { BatchOrder(tokens, config, eos); },
              ThrowsMessage<Error>(HasSubstr("the data are 40 texts; a batch of 41 needs more")));
}

}  // namespace
}  // namespace sinkscope
