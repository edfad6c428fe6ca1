// Sinks and norms of an autoregressive model, as "When Attention Sink Emerges in Language Models"
// (arXiv:2410.10781) measures them: sums over samples, and what they come to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "measure/csv_tables.h"

namespace sinkscope {

struct AutoregressiveShape {
  std::size_t layers = 0;     // L
  std::size_t heads = 0;      // H
  std::size_t positions = 0;  // T
};

/// The queries first .. last - 1 see a key.
struct QueriesOfKey {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Of key k among `positions` of a causal map: from k on; with a window (0: none) the first `window` of
/// these; a key of the prefix is seen by all.
QueriesOfKey queries_of_key(std::int64_t k, std::int64_t positions, std::int64_t window, std::int64_t prefix);

/// What one sample's forward pass shows.
struct AutoregressiveSample {
  std::vector<float> columns;  // [L, H, T]: sum over the queries of the attention to a key
  std::vector<double>
      hidden_norm;                 // [L + 1, T]: the residual stream, embeddings first, before the final norm
  std::vector<double> key_norm;    // [L, T]: means over the key heads; keys are rotated
  std::vector<double> value_norm;  // [L, T]: likewise
  std::vector<double> norm_product;  // [L, H, T]: sum over the queries i that see key k of ||q_i|| ||k_k||
  std::vector<double> cosine;        // [L, H, T]: likewise of cos(q_i, k_k)
};

struct AutoregressiveMeasure {
  AutoregressiveShape shape;
  double epsilon = 0.3;                            // alpha above it is a sink
  std::size_t position = 0;                        // k that maps and ratios are about
  bool slot = false;                               // the model has a key that is no token
  bool query_key = true;                           // its scores are made of q.k
  std::vector<std::vector<QueriesOfKey>> queries;  // [L][T]
};

class AutoregressiveSums {
 public:
  explicit AutoregressiveSums(AutoregressiveMeasure measure) : measure_(std::move(measure)) {}

  /// Throws Error when a number is not finite or a length is not the shape's.
  void add(const AutoregressiveSample& sample);

  std::size_t samples() const { return counts_.size(); }

  /// The measurements of ar_measure.json (docs/measure.md) but what names model and texts. At least one
  /// sample.
  nlohmann::ordered_json result() const;

 private:
  void add_columns(const AutoregressiveSample& sample);
  void add_ratios(const AutoregressiveSample& sample);

  AutoregressiveMeasure measure_;
  std::vector<std::vector<double>> counts_;  // [samples][T]: (layer, head) in which the key is a sink
  std::vector<double> alpha_;                // [L, H, T], sums over samples like all that follows
  std::vector<double> sinks_;                // [L, H]: samples in which `position` is one
  double slot_alpha_ = 0, slot_sinks_ = 0;   // over (layer, head) too
  std::vector<double> hidden_norm_, key_norm_, value_norm_, norm_product_, cosine_;
  std::vector<double> massive_, key_ratio_, value_ratio_;  // [L + 1], [L], [L]
};

/// How each measurement is pooled, a sentence by field.
nlohmann::ordered_json autoregressive_aggregation();

/// positions.csv, heads.csv, norms.csv and layers.csv of ar_measure.json.
std::vector<CsvTable> autoregressive_tables(const nlohmann::ordered_json& measured);

}  // namespace sinkscope
