#include <sinkscope/memory.h>

#include <algorithm>

#include "model/block_names.h"
#include "model/workspace.h"
#include "ops/cpu_kernels.h"
#include "ops/linear.h"
#include "ops/vocabulary_head.h"

namespace sinkscope {
namespace {

constexpr std::int64_t float_bytes = 4;
// The kernel maps pages of a file around the one that is touched.
constexpr std::int64_t pages_mapped_at_once = 64 << 10;

std::int64_t bytes_of_weights(const Checkpoint& checkpoint, const MemoryUse& use) {
  const ModelConfig& config = checkpoint.config();
  const OuterNames outer = outer_names(config);
  std::int64_t bytes = 0;
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (config.tied_head ? name == outer.head : name == outer.embedding) continue;
    const bool quantised = use.weights == WeightFormat::int8 && view.shape.size() == 2;
    // a scale and a sum for each output column
    bytes += quantised ? view.element_count() + 2 * float_bytes * view.shape[0]
                       : view.element_count() * static_cast<std::int64_t>(c10::elementSize(use.dtype));
  }
  return bytes;
}

std::int64_t bytes_of_embedding(const Checkpoint& checkpoint, const MemoryUse& use) {
  const auto table =
      static_cast<std::int64_t>(checkpoint.tensor(outer_names(checkpoint.config()).embedding).bytes.size());
  return std::min(table, use.sequences * use.positions * pages_mapped_at_once);
}

std::int64_t attention_workspace(const ModelConfig& config, const MemoryUse& use) {
  const CpuKernels& kernels = cpu_kernels();
  const auto bytes = use.dtype == at::kBFloat16 ? kernels.attention_bf16.workspace_bytes
                                                : kernels.attention_f32.workspace_bytes;
  return static_cast<std::int64_t>(bytes(use.positions, config.head_dim));
}

std::int64_t bytes_of_threads(const ModelConfig& config, const MemoryUse& use) {
  const auto value = static_cast<std::int64_t>(c10::elementSize(use.dtype));
  const InputForm form = input_form(use.dtype, use.weights == WeightFormat::int8);
  const std::int64_t width = widest_slice;
  const std::int64_t longest = std::max({config.width, config.mlp_width, config.heads * config.head_dim});
  const std::int64_t results =
      4 * most_rows_of_a_piece * width * value;  // gate and up, or the head's, and one apart
  const std::int64_t sums = form == InputForm::storage ? 0 : 2 * most_rows_of_a_piece * width * float_bytes;
  const std::int64_t widened = form == InputForm::widened ? 2 * width * longest * float_bytes : 0;
  return use.threads * (results + sums + widened + attention_workspace(config, use));
}

// Asked for carelessly they exceed any integer.
std::int64_t bytes_of_maps(const MemoryUse& use) {
  constexpr double most = 1e18;
  const auto positions = static_cast<double>(use.positions);
  const double bytes = static_cast<double>(float_bytes * use.maps) * static_cast<double>(use.sequences) *
                       positions * positions;
  return static_cast<std::int64_t>(std::min(bytes, most));
}

std::int64_t bytes_of_observations(const ModelConfig& config, const MemoryUse& use) {
  const std::int64_t maps = config.layers * config.heads;
  const std::int64_t columns = maps * use.sequences * use.positions * float_bytes;
  std::int64_t bytes = bytes_of_maps(use);
  if (use.capture != Capture::none || use.removes_keys) bytes += (query_classes + 1) * columns;
  if (use.capture == Capture::full)
    bytes += config.layers * config.kv_heads * use.sequences * use.positions * float_bytes;
  // used columns and diagonal, those of the previous step and their sum over classes; a byte a key twice
  if (use.removes_keys) bytes += 5 * columns + 2 * columns / float_bytes;
  // lists of a pass, the rows they were copied to and the keys that go; a count of 16 bits
  const std::int64_t listed = std::min(use.listed_keys, 3 * use.positions);
  if (listed > 0) bytes += 3 * listed * columns + columns / 2;
  if (use.capture != Capture::none && use.sequences > 1)
    bytes += (query_classes + 1) * columns / use.sequences;  // one sample's own, as it is written
  return bytes;
}

std::int64_t bytes_of_head(const ModelConfig& config, const MemoryUse& use) {
  if (!use.keeps_logits) return head_parts_bytes(use.sequences * use.positions);
  const auto value = static_cast<std::int64_t>(c10::elementSize(use.dtype));
  constexpr std::int64_t noise_bytes = 8;                 // a row of float64
  const std::int64_t copies = use.sequences > 1 ? 3 : 1;  // with guidance: two, and their mixture
  return config.head_rows * (rows_of_logits * (copies * value + float_bytes) + noise_bytes);
}

}  // namespace

MemoryEstimate estimate_memory(const Checkpoint& checkpoint, const MemoryUse& use) {
  const ModelConfig& config = checkpoint.config();
  MemoryEstimate estimate;
  estimate.weights = bytes_of_weights(checkpoint, use);
  estimate.embedding = bytes_of_embedding(checkpoint, use);
  estimate.pass =
      plan_pass(pass_shape(config, use.dtype, use.weights, Backend::cpu), use.sequences * use.positions);
  estimate.threads = bytes_of_threads(config, use);
  estimate.observations = bytes_of_observations(config, use);
  estimate.head = bytes_of_head(config, use);
  if (use.compares) {
    estimate.pass *= 2;
    MemoryUse logits = use;
    logits.keeps_logits = true;
    estimate.head += 2 * bytes_of_head(config, logits);
    estimate.observations += config.layers * config.heads * use.sequences * use.positions * float_bytes;
  }
  if (use.keeps_keys) estimate.cache = KeyValueCache::bytes(config, use.dtype, use.sequences * use.positions);
  return estimate;
}

}  // namespace sinkscope
