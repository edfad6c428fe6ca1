#include "model/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sinkscope/error.h>

#include <cstring>

#include "checkpoint/attention_variant_config.h"
#include "model/block_names.h"
#include "model/sink_token.h"

namespace sinkscope {
namespace {

at::ScalarType scalar_type(const std::string& name, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return at::kFloat;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    default:
      throw Error("tensor {}: weights are F32, F16 or BF16, not {}", name, dtype_name(dtype));
  }
}

// The tensor where it lies in its file; copied only when it lies there unaligned.
at::Tensor mapped_tensor(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView& view = checkpoint.tensor(name);
  const auto options = at::TensorOptions(scalar_type(name, view.dtype));
  void* data = const_cast<std::byte*>(view.bytes.data());
  if (reinterpret_cast<std::uintptr_t>(data) % dtype_size(view.dtype) == 0)
    return at::from_blob(data, view.shape, options);
  at::Tensor copy = at::empty(view.shape, options);
  std::memcpy(copy.data_ptr(), view.bytes.data(), view.bytes.size());
  return copy;
}

// Whether the CPU's kernels are of this model's attention.
bool has_kernels(const ModelConfig& config) { return config.attention == AttentionVariant{}; }

// Loads tensors one after the other and counts the bytes for the progress display.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const TransformerOptions& options, Backend backend)
      : checkpoint_(checkpoint), options_(options), backend_(backend) {
    for (const auto& [name, view] : checkpoint.tensors()) total_bytes_ += view.bytes.size();
  }

  /// granule: see LinearOptions. The file's pages go as soon as they are copied.
  Linear linear(const std::string& name, std::int64_t granule = 1) {
    return linear(name, granule, options_.weights == WeightFormat::int8);
  }
  Linear linear(const std::string& name, std::int64_t granule, bool int8) {
    const std::span<const std::byte> bytes = checkpoint_.tensor(name).bytes;
    prefetch_pages(bytes);
    const at::Tensor stored = mapped_tensor(checkpoint_, name);
    const auto row_bytes = static_cast<std::size_t>(stored.size(1)) * stored.element_size();
    LinearOptions options{options_.dtype, options_.device, int8, granule};
    options.copied = [&](std::int64_t begin, std::int64_t rows) {
      release_pages(bytes.subspan(static_cast<std::size_t>(begin) * row_bytes,
                                  static_cast<std::size_t>(rows) * row_bytes));
    };
    try {
      Linear result(backend_, stored, options);
      finish(name);
      return result;
    } catch (const Error& error) {
      throw Error("{}: tensor {}: {}", checkpoint_.directory().string(), name, error.what());
    }
  }
  /// Undefined where the name is empty.
  at::Tensor vector(const std::string& name) { return tensor(name, options_.dtype); }
  at::Tensor tensor(const std::string& name, at::ScalarType dtype) {
    if (name.empty()) return {};
    at::Tensor result = mapped_tensor(checkpoint_, name).to(options_.device, dtype);
    finish(name);
    return result;
  }
  at::Tensor embedding(const std::string& name) {
    at::Tensor stored = mapped_tensor(checkpoint_, name);
    finish(name);
    return backend_ == Backend::cpu ? stored : stored.to(options_.device, options_.dtype);
  }

 private:
  void finish(const std::string& name) {
    loaded_bytes_ += checkpoint_.tensor(name).bytes.size();
    if (options_.progress)
      options_.progress(static_cast<double>(loaded_bytes_) / static_cast<double>(total_bytes_));
  }

  const Checkpoint& checkpoint_;
  const TransformerOptions& options_;
  Backend backend_;
  std::size_t total_bytes_ = 0;
  std::size_t loaded_bytes_ = 0;
};

void load_experts(Loader& loader, const BlockNames& names, std::int64_t count, BlockWeights& block) {
  block.router = loader.linear(names.router, 1, /*int8=*/false);
  block.selection_bias = loader.vector(names.selection_bias);
  if (block.selection_bias.defined()) block.selection_bias = block.selection_bias.to(at::kCPU, at::kFloat);
  for (std::int64_t expert = 0; expert < count; ++expert) {
    const ExpertNames own = expert_names(names, expert);
    block.experts.push_back({loader.linear(own.gate), loader.linear(own.up), loader.linear(own.down)});
  }
}

AttentionVariantWeights load_variant(Loader& loader, const VariantNames& names, const ModelConfig& config,
                                     const at::Device& device) {
  const auto float_tensor = [&](const std::string& name) { return loader.tensor(name, at::kFloat); };
  AttentionVariantWeights weights;
  weights.slot_key = float_tensor(names.slot_key);
  weights.slot_value = float_tensor(names.slot_value);
  weights.value_bias = float_tensor(names.value_bias);
  weights.relative_bias = float_tensor(names.relative_bias);
  weights.kernel_in = float_tensor(names.kernel_in);
  weights.kernel_out = float_tensor(names.kernel_out);
  if (weights.slot_key.defined()) weights.slot_key = slot_key(weights.slot_key, config.head_dim);
  if (config.attention.slot == KeySlot::key_bias)
    weights.slot_value =
        fixed_slot_value(config.attention, config.head_dim, at::TensorOptions(at::kFloat).device(device));
  return weights;
}

BlockWeights load_block(Loader& loader, const BlockNames& names, const ModelConfig& config) {
  BlockWeights block;
  block.attention_norm = loader.vector(names.attention_norm);
  block.query = loader.linear(names.query, config.head_dim);
  block.key = loader.linear(names.key, config.head_dim);
  block.value = loader.linear(names.value);
  block.attention_out = loader.linear(names.attention_out);
  block.query_bias = loader.vector(names.query_bias);
  block.key_bias = loader.vector(names.key_bias);
  block.value_bias = loader.vector(names.value_bias);
  block.output_bias = loader.vector(names.output_bias);
  block.query_norm = loader.vector(names.query_norm);
  block.key_norm = loader.vector(names.key_norm);
  block.mlp_norm = loader.vector(names.mlp_norm);
  if (config.experts)
    load_experts(loader, names, config.experts->count, block);
  else
    block.mlp = {loader.linear(names.gate), loader.linear(names.up), loader.linear(names.down)};
  return block;
}

}  // namespace

void check_weight_format(const ModelConfig& config, const TransformerOptions& options) {
  const bool kernels = options.device.is_cpu() && !options.plain_operations && has_kernels(config);
  if (options.weights == WeightFormat::int8 && !kernels)
    throw UsageError(
        "--weights int8 runs on the CPU's own kernels only{}; use --device cpu or --weights native",
        has_kernels(config) ? "" : ", and there are none for this model's variant of attention");
}

std::shared_ptr<const TransformerWeights> load_weights(std::shared_ptr<const Checkpoint> checkpoint,
                                                       const TransformerOptions& options) {
  const ModelConfig& config = checkpoint->config();
  const bool on_cpu = options.device.is_cpu();
  if (on_cpu && options.dtype != at::kFloat && options.dtype != at::kBFloat16)
    throw UsageError("--dtype {} does not run on the CPU: f32 and bf16 do",
                     options.dtype == at::kHalf ? "f16" : c10::toString(options.dtype));
  check_weight_format(config, options);
  const bool plain = options.plain_operations || !has_kernels(config);
  auto weights = std::make_shared<TransformerWeights>();
  weights->dtype = options.dtype;
  weights->device = options.device;
  weights->format = options.weights;
  weights->backend = on_cpu && !plain ? Backend::cpu : Backend::aten;
  Loader loader(*checkpoint, options, weights->backend);
  const OuterNames outer = outer_names(config);
  weights->embedding = loader.embedding(outer.embedding);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    weights->blocks.push_back(load_block(loader, block_names(config, layer), config));
    weights->blocks.back().variant =
        load_variant(loader, variant_names(config, layer), config, options.device);
  }
  if (!config.attention.post_norm) weights->final_norm = loader.vector(outer.final_norm);
  weights->head = loader.linear(config.tied_head ? outer.embedding : outer.head);
  const VariantOuterNames variant = variant_outer_names(config);
  weights->position_table = loader.vector(variant.positions);
  if (!variant.sink_token.empty()) place_sink_token(loader.vector(variant.sink_token), config, *weights);
  weights->checkpoint = std::move(checkpoint);
  return weights;
}

}  // namespace sinkscope
