#include "model/observation_storage.h"

#include <ATen/ops/empty.h>

namespace sinkscope {

void ObservationStorage::begin(const ModelConfig& config, const ForwardRequest& request, std::int64_t keys) {
  const std::int64_t sequences = request.tokens.sequences();
  const auto of_type = [&](at::ScalarType type, bool asked_for, const std::string& name,
                           const std::vector<std::int64_t>& shape) {
    if (!asked_for) return at::Tensor();
    at::Tensor& kept = kept_[name];
    if (!kept.defined() || kept.sizes() != at::IntArrayRef(shape)) {
      kept.reset();
      kept = at::empty(shape, at::TensorOptions(type));
    }
    return kept;
  };
  const auto room = [&](bool asked_for, const std::string& name, const std::vector<std::int64_t>& shape) {
    return of_type(at::kFloat, asked_for, name, shape);
  };
  const auto lists = [&](std::int64_t width, const std::string& name,
                         const std::vector<std::int64_t>& shape) {
    return of_type(at::kInt, width > 0, name, shape);
  };
  const bool columns = request.capture != Capture::none;
  const bool used = columns && request.removed != nullptr;
  const bool full = request.capture == Capture::full;
  const std::int64_t l = config.layers, h = config.heads;
  result_ = {};
  result_.column_sum = room(columns, "column_sum", {query_classes, l, h, keys});
  result_.column_used = room(used, "column_used", {l, h, keys});
  result_.diagonal = room(columns, "diagonal", {l, h, keys});
  result_.diagonal_used = room(used, "diagonal_used", {l, h, keys});
  result_.row_entropy = room(full, "row_entropy", {sequences, query_classes, l, h});
  result_.row_max = room(full, "row_max", {sequences, query_classes, l, h});
  result_.value_norm = room(full, "value_norm", {l, config.kv_heads, keys});
  const RowRequest& rows = request.rows;
  const std::int64_t tokens = request.tokens.tokens();
  result_.row_most = lists(rows.most, "row_most", {l, h, tokens, rows.most});
  result_.row_least = lists(rows.least, "row_least", {l, h, tokens, rows.least});
  result_.last_row = room(rows.last, "last_row", {l, h, keys});
  result_.changed_share = room(rows.changed_share, "changed_share", {l, h, tokens});
  result_.maps.resize(static_cast<std::size_t>(sequences));
  result_.empty_rows.assign(static_cast<std::size_t>(sequences), 0);
}

AttentionObservation ObservationStorage::layer(std::int64_t layer) const {
  const auto of_layer = [&](const at::Tensor& all, std::int64_t axis) {
    return all.defined() ? all.select(axis, layer) : all;
  };
  AttentionObservation seen;
  seen.column_sum = of_layer(result_.column_sum, 1);
  seen.column_used = of_layer(result_.column_used, 0);
  seen.diagonal = of_layer(result_.diagonal, 0);
  seen.diagonal_used = of_layer(result_.diagonal_used, 0);
  seen.row_entropy = of_layer(result_.row_entropy, 2);
  seen.row_max = of_layer(result_.row_max, 2);
  seen.row_most = of_layer(result_.row_most, 0);
  seen.row_least = of_layer(result_.row_least, 0);
  seen.last_row = of_layer(result_.last_row, 0);
  seen.changed_share = of_layer(result_.changed_share, 0);
  return seen;
}

void ObservationStorage::end_layer(std::int64_t layer, AttentionObservation& seen) {
  for (auto& [where, map] : seen.maps)
    result_.maps[static_cast<std::size_t>(where.first)].emplace(LayerHead{layer, where.second},
                                                                std::move(map));
  for (std::size_t b = 0; b < seen.empty_rows.size(); ++b) result_.empty_rows[b] += seen.empty_rows[b];
}

void ObservationStorage::set_value_norm(std::int64_t layer, const at::Tensor& norms) {
  result_.value_norm.select(0, layer).copy_(norms.transpose(0, 1));
}

}  // namespace sinkscope
