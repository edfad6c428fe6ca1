#include "sampling/sample_logits.h"

#include <c10/core/InferenceMode.h>
#include <sinkscope/memory.h>

#include <algorithm>

#include "ops/parallel.h"
#include "ops/vocabulary_head.h"

namespace sinkscope {

at::Tensor read_logits(const Transformer& model, const at::Tensor& hidden, double guidance,
                       const WantedRows& rows, std::int64_t begin, std::int64_t count) {
  at::Tensor logits = model.logits_of(hidden.narrow(0, rows.first + begin, count));
  if (guidance > 0)
    logits =
        guided_logits(logits, model.logits_of(hidden.narrow(0, rows.unconditional + begin, count)), guidance);
  return logits.to(at::kCPU, at::kFloat).contiguous();
}

std::vector<std::int64_t> rows_of_predictions(const DenoisingRule& rule, const PassPlan& plan) {
  std::vector<std::int64_t> rows;
  std::int64_t previous = -1;
  for (const std::int64_t position : plan.predicted) {
    const std::int64_t source = rule.source(position, plan);
    rows.push_back(rows.empty() ? 0 : rows.back() + (source == previous ? 0 : 1));
    previous = source;
  }
  return rows;
}

SampleLogits::SampleLogits(const Transformer& model, const ForwardResult& forwarded, double guidance,
                           const WantedRows& wanted, std::vector<std::int64_t> rows)
    : model_(model), forwarded_(forwarded), guidance_(guidance), wanted_(wanted), rows_(std::move(rows)) {}

const VocabularyRows& SampleLogits::rows() const { return forwarded_.vocabulary; }

std::size_t SampleLogits::row(std::size_t index) const {
  return static_cast<std::size_t>(wanted_.first + rows_[index]);
}

std::span<float> SampleLogits::logits(std::size_t index) {
  const std::int64_t wanted = rows_[index];
  if (!chunk_.defined() || wanted >= begin_ + chunk_.size(0)) read_from(wanted);
  return row_of_chunk(wanted);
}

void SampleLogits::for_each(const std::function<void(std::size_t index, std::span<float> logits)>& body) {
  std::size_t first = 0;  // prediction
  while (first < rows_.size()) {
    read_from(rows_[first]);
    std::vector<std::size_t> firsts;  // the first prediction of each row of the chunk
    std::size_t last = first;
    for (; last < rows_.size() && rows_[last] < begin_ + chunk_.size(0); ++last)
      if (last == first || rows_[last] != rows_[last - 1]) firsts.push_back(last);
    parallel_for(static_cast<std::int64_t>(firsts.size()), [&](std::int64_t i) {
      const c10::InferenceMode no_autograd;  // a thread's own
      for (std::size_t p = firsts[static_cast<std::size_t>(i)];
           p < last && rows_[p] == rows_[firsts[static_cast<std::size_t>(i)]]; ++p)
        body(p, row_of_chunk(rows_[p]));
    });
    first = last;
  }
}

std::span<float> SampleLogits::row_of_chunk(std::int64_t row) const {
  const auto width = static_cast<std::size_t>(chunk_.size(1));
  return {chunk_.data_ptr<float>() + (row - begin_) * chunk_.size(1), width};
}

void SampleLogits::read_from(std::int64_t row) {
  begin_ = row;
  const std::int64_t count = std::min(rows_of_logits, rows_.back() + 1 - row);
  chunk_ = read_logits(model_, forwarded_.hidden, guidance_, wanted_, row, count);
}

}  // namespace sinkscope
