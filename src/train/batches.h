// Which tokens a pass sees: an order of all texts for each epoch, cut into batches of equal rows.
#pragma once

#include <cstdint>
#include <vector>

#include "train/token_cache.h"
#include "train/train_config.h"

namespace sinkscope {

/// B rows of T tokens.
struct TrainingBatch {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  std::vector<std::int32_t> ids;          // [B, T]
  std::vector<std::uint8_t> predictable;  // [B, T]: 1 where the token may be asked for
};

/// The batches of a run, by their number from 0 on: a function of the seed, so that a run that goes on in the
/// middle sees what it would have seen.
///
/// Layout rows: an epoch is a random order of the texts, sorted by length within pools of 32 batches and cut
/// into batches, whose order is random again. A row is as long as its batch's longest text (and the fill),
/// rounded up to a multiple of 8, `context` at most; longer texts are cut. What a row has behind its text is
/// the end token.
/// Layout joined: an epoch begins at a random place among the first `context` tokens and takes pieces of
/// `context` tokens in random order.
/// What an epoch has left over for no whole batch is left out.
class BatchOrder {
 public:
  /// Throws Error when the data is less than one batch.
  BatchOrder(const TokenCache& cache, const TrainConfig& config, std::int32_t eos);

  TrainingBatch batch(std::int64_t number);
  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }

 private:
  void begin_epoch(std::int64_t epoch);
  TrainingBatch rows_batch(std::int64_t number, std::int64_t in_epoch) const;
  TrainingBatch joined_batch(std::int64_t in_epoch) const;
  void put(const TokenDocument& document, std::int64_t row, TrainingBatch& batch) const;

  const TokenCache& cache_;
  const TrainConfig& config_;
  std::int32_t eos_;
  std::int64_t batches_per_epoch_ = 0;
  std::int64_t epoch_ = -1;
  std::int64_t first_token_ = 0;     // of the epoch; joined
  std::vector<std::int64_t> order_;  // texts or pieces, of the epoch
};

}  // namespace sinkscope
