// Where the observations of all layers of a pass come together.
#pragma once

#include <sinkscope/model_config.h>
#include <sinkscope/transformer.h>

#include "ops/attention.h"

namespace sinkscope {

/// Tensors of the last pass, used again when the next one is of the same size.
class ObservationStorage {
 public:
  /// Makes room for what the request asks for, over this many keys.
  void begin(const ModelConfig& config, const ForwardRequest& request, std::int64_t keys);
  /// Views of one layer, for attention() to fill; their content is that of an earlier pass.
  AttentionObservation layer(std::int64_t layer) const;
  /// Takes what is not a view: the maps and the counts of empty rows.
  void end_layer(std::int64_t layer, AttentionObservation& seen);
  void set_value_norm(std::int64_t layer, const at::Tensor& norms);  // [K, Hkv]
  const Observation& result() const { return result_; }

 private:
  std::map<std::string, at::Tensor> kept_;
  Observation result_;
};

}  // namespace sinkscope
