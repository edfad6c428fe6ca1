// From the hidden rows that a pass left to the logits behind a sample's predictions.
#pragma once

#include <sinkscope/transformer.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sampling/denoising_batch.h"

namespace sinkscope {

/// Of the wanted rows of one sample in a pass: where they begin, and those of its unconditional row.
struct WantedRows {
  std::int64_t first = 0;
  std::int64_t unconditional = 0;
};

/// float32 [count, V] on the CPU, from row `begin` of the sample on; with guidance above 0, guided.
at::Tensor read_logits(const Transformer& model, const at::Tensor& hidden, double guidance,
                       const WantedRows& rows, std::int64_t begin, std::int64_t count);

/// Which of a sample's wanted rows each prediction is read from, from 0.
std::vector<std::int64_t> rows_of_predictions(const DenoisingRule& rule, const PassPlan& plan);

/// The logits of one sample, some rows at a time: all of them may be many times what a pass takes.
class SampleLogits : public PredictedLogits {
 public:
  /// `rows` of each prediction, as rows_of_predictions() has them. Model and pass must outlive the object.
  SampleLogits(const Transformer& model, const ForwardResult& forwarded, double guidance,
               const WantedRows& wanted, std::vector<std::int64_t> rows);

  const VocabularyRows& rows() const override;
  std::size_t row(std::size_t index) const override;
  std::span<float> logits(std::size_t index) override;
  void for_each(const std::function<void(std::size_t index, std::span<float> logits)>& body) override;

 private:
  std::span<float> row_of_chunk(std::int64_t row) const;
  void read_from(std::int64_t row);

  const Transformer& model_;
  const ForwardResult& forwarded_;
  double guidance_;
  WantedRows wanted_;
  std::vector<std::int64_t> rows_;  // of each prediction, from wanted_.first
  std::int64_t begin_ = 0;
  at::Tensor chunk_;  // float32 on the CPU, rows from begin_ on
};

}  // namespace sinkscope
