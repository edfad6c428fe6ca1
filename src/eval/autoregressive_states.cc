#include "eval/autoregressive_states.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <span>

#include "base/random_bits.h"

namespace sinkscope {
namespace {

constexpr std::size_t sequences_of_a_pass = 8;

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
  const double* begin = values.data_ptr<double>();
  return {begin, begin + values.numel()};
}

void append(std::vector<double>& to, const at::Tensor& tensor) {
  const std::vector<double> values = numbers(tensor);
  to.insert(to.end(), values.begin(), values.end());
}

// Sums over the queries of each key [T, ...] of rows [T, ...]: differences of running sums, so that no map of
// queries by keys is needed.
at::Tensor sums_of_queries(const at::Tensor& rows, const at::Tensor& first, const at::Tensor& last) {
  const at::Tensor running = at::cat({at::zeros_like(rows.narrow(0, 0, 1)), rows.cumsum(0)});
  return running.index_select(0, last) - running.index_select(0, first);
}

// Adds one layer of one sequence to the sample; query [T, H, D], key and value [T, Hkv, D].
void add_heads(AutoregressiveSample& sample, const std::vector<QueriesOfKey>& queries,
               const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  std::vector<std::int64_t> firsts, lasts;
  for (const QueriesOfKey& of_key : queries) {
    firsts.push_back(of_key.first);
    lasts.push_back(of_key.last);
  }
  const at::Tensor first = at::tensor(firsts).to(query.device()), last = at::tensor(lasts).to(query.device());
  // In float64: directions are added up over all queries.
  const at::Tensor q = query.to(at::kDouble), k = key.to(at::kDouble);
  const at::Tensor query_norm = q.norm(2, -1), key_norm = k.norm(2, -1);  // [T, H], [T, Hkv]
  const auto unit = [](const at::Tensor& rows, const at::Tensor& norms) {
    return rows / norms.clamp_min(1e-300).unsqueeze(-1);
  };
  const auto for_each_query_head = [&](const at::Tensor& t) {
    return t.repeat_interleave(query.size(1) / key.size(1), 1);
  };
  const at::Tensor directions = sums_of_queries(unit(q, query_norm), first, last);
  const at::Tensor cosine = (directions * for_each_query_head(unit(k, key_norm))).sum(-1);
  const at::Tensor product = sums_of_queries(query_norm, first, last) * for_each_query_head(key_norm);
  append(sample.cosine, cosine.t());
  append(sample.norm_product, product.t());
  append(sample.key_norm, key_norm.mean(1));
  append(sample.value_norm, value.to(at::kDouble).norm(2, -1).mean(1));
}

TokenBatch batch_of(std::span<const std::vector<std::int32_t>> sequences) {
  TokenBatch batch;
  for (const std::vector<std::int32_t>& ids : sequences) {
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.offsets.push_back(batch.tokens());
  }
  batch.query_class.assign(batch.ids.size(), static_cast<std::uint8_t>(QueryClass::prompt));
  return batch;
}

std::vector<AutoregressiveSample> samples_of(const Transformer& model, const AutoregressiveMeasure& measure,
                                             std::span<const std::vector<std::int32_t>> sequences,
                                             ForwardWorkspace& workspace) {
  const TokenBatch batch = batch_of(sequences);
  const auto length = static_cast<std::int64_t>(measure.shape.positions);
  std::vector<AutoregressiveSample> samples(sequences.size());
  const auto look = [&](const HeadStates& states) {
    for (std::size_t b = 0; b < samples.size(); ++b) {
      const auto of_sequence = [&](const at::Tensor& rows) {
        return rows.narrow(0, batch.offsets[b], length);
      };
      add_heads(samples[b], measure.queries[static_cast<std::size_t>(states.layer)],
                of_sequence(states.query), of_sequence(states.key), of_sequence(states.value));
    }
  };
  ForwardRequest request{.tokens = batch};
  request.head = Head::none;
  request.capture = Capture::columns;
  request.hidden_norms = true;
  request.look = look;
  const ForwardResult result = model.forward(request, workspace);
  const at::Tensor columns = result.observation.column_sum.sum(0);  // [L, H, N]
  for (std::size_t b = 0; b < samples.size(); ++b) {
    const at::Tensor own = columns.narrow(2, batch.offsets[b], length).contiguous();
    samples[b].columns.assign(own.data_ptr<float>(), own.data_ptr<float>() + own.numel());
    samples[b].hidden_norm = numbers(result.hidden_norm.narrow(1, batch.offsets[b], length));
  }
  return samples;
}

}  // namespace

AutoregressiveMeasure autoregressive_measure(const ModelConfig& config, std::int64_t positions,
                                             double epsilon, std::int64_t position) {
  AutoregressiveMeasure measure;
  measure.shape = {static_cast<std::size_t>(config.layers), static_cast<std::size_t>(config.heads),
                   static_cast<std::size_t>(positions)};
  measure.epsilon = epsilon;
  measure.position = static_cast<std::size_t>(position);
  measure.slot = config.attention.slot != KeySlot::none;
  measure.query_key = config.attention.similarity != Similarity::elu_kernel &&
                      config.attention.similarity != Similarity::mlp_kernel;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    measure.queries.emplace_back();
    for (std::int64_t k = 0; k < positions; ++k)
      measure.queries.back().push_back(
          queries_of_key(k, positions, config.window_of(layer), config.attention.prefix));
  }
  return measure;
}

AutoregressiveSums measure_sequences(const Transformer& model, const AutoregressiveMeasure& measure,
                                     std::span<const std::vector<std::int32_t>> sequences,
                                     const std::function<void(std::size_t done)>& progress) {
  AutoregressiveSums sums(measure);
  ForwardWorkspace workspace;
  for (std::size_t begin = 0; begin < sequences.size(); begin += sequences_of_a_pass) {
    const auto some = sequences.subspan(begin, std::min(sequences_of_a_pass, sequences.size() - begin));
    for (const AutoregressiveSample& sample : samples_of(model, measure, some, workspace)) sums.add(sample);
    if (progress) progress(sums.samples());
  }
  return sums;
}

std::vector<std::vector<std::int32_t>> random_sequences(std::size_t count, std::size_t length,
                                                        std::int64_t vocabulary, bool repeated,
                                                        std::uint64_t seed) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (std::size_t i = 0; i < count; ++i) {
    const RandomPlaces random(seed, "sequence", i);
    std::vector<std::int32_t> ids(length);
    for (std::size_t t = 0; t < length; ++t)
      ids[t] =
          static_cast<std::int32_t>(random.below(repeated ? 0 : t, static_cast<std::uint64_t>(vocabulary)));
    sequences.push_back(std::move(ids));
  }
  return sequences;
}

}  // namespace sinkscope
