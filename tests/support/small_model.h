// Models of the fixtures, and batches of whole sequences for them.
#pragma once

#include <sinkscope/transformer.h>

#include <memory>
#include <string>
#include <vector>

#include "support/golden.h"

namespace sinkscope::testing {

inline Transformer load(const std::string& fixture, bool plain_operations = false,
                        at::ScalarType dtype = at::kFloat) {
  const std::filesystem::path directory =
      fixture == "tiny-llada" ? std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "models" / fixture
                              : golden_dir(fixture);
  TransformerOptions options;
  options.dtype = dtype;
  options.plain_operations = plain_operations;
  return {std::make_shared<const Checkpoint>(Checkpoint::open(directory)), options};
}

/// All of them prompts.
inline TokenBatch batch_of(const std::vector<std::vector<std::int32_t>>& rows) {
  TokenBatch batch;
  for (const auto& row : rows) {
    batch.ids.insert(batch.ids.end(), row.begin(), row.end());
    batch.offsets.push_back(batch.tokens());
  }
  batch.query_class.assign(batch.ids.size(), 0);
  return batch;
}

/// [rows, length] of int64.
inline std::vector<std::vector<std::int32_t>> rows_of(const at::Tensor& ids) {
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(ids.size(0)));
  for (std::int64_t b = 0; b < ids.size(0); ++b)
    for (std::int64_t i = 0; i < ids.size(1); ++i)
      rows[static_cast<std::size_t>(b)].push_back(ids[b][i].item<std::int32_t>());
  return rows;
}

}  // namespace sinkscope::testing
