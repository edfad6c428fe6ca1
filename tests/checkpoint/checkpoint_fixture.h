// Small checkpoints and broken files, built into a temporary directory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "support/temporary_folder.h"

namespace sinkscope {

using testing::TemporaryFolder;

inline std::filesystem::path write_text(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

/// The message of the Error that `action` throws; "(no Error)" when it throws none.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error)";
}

/// 8 bytes little-endian, the header, the data: the layout of a safetensors file, right or wrong.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string file;
  for (unsigned shift = 0; shift < 64; shift += 8) file += static_cast<char>((header.size() >> shift) & 0xFF);
  return file.append(header).append(data);
}

struct TestTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};
using TestTensors = std::map<std::string, TestTensor>;

/// A valid safetensors file of these tensors, in the order of their names.
inline std::string safetensors_file(const TestTensors& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    data += tensor.bytes;
    header[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_bytes(header.dump(), data);
}

/// bf16 zeros of a shape.
inline TestTensor bf16_zeros(std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return {"BF16", std::move(shape), std::string(2 * count, '\0')};
}

/// config.json of a LLaDA of 2 blocks: width 8, 2 heads, 2 KV heads, MLP 16.
inline Json tiny_config() {
  return Json::parse(
      R"({"architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": 8, "n_layers": 2,
    "n_heads": 2, "n_kv_heads": 2, "mlp_hidden_size": 16, "mlp_ratio": 4, "activation_type": "silu",
    "block_type": "llama", "block_group_size": 1, "vocab_size": 12, "embedding_size": 12, "rope": true,
    "rope_theta": 500000.0, "rope_full_precision": true, "rms_norm_eps": 1e-05, "layer_norm_type": "rms",
    "layer_norm_with_affine": true, "bias_for_layer_norm": false, "include_bias": false, "include_qkv_bias": false,
    "attention_layer_norm": false, "weight_tying": false, "scale_logits": false, "input_emb_norm": false,
    "alibi": false, "multi_query_attention": null, "max_sequence_length": 64, "mask_token_id": 11,
    "eos_token_id": 1, "pad_token_id": 1, "torch_dtype": "bfloat16"})");
}

/// The tensors of tiny_config(); `kv_width` other than 8 for fewer KV heads.
inline TestTensors tiny_tensors(std::int64_t kv_width = 8) {
  TestTensors tensors = {{"model.transformer.wte.weight", bf16_zeros({12, 8})},
                         {"model.transformer.ln_f.weight", bf16_zeros({8})},
                         {"model.transformer.ff_out.weight", bf16_zeros({12, 8})}};
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = fmt::format("model.transformer.blocks.{}.", layer);
    tensors[block + "attn_norm.weight"] = bf16_zeros({8});
    tensors[block + "q_proj.weight"] = bf16_zeros({8, 8});
    tensors[block + "k_proj.weight"] = bf16_zeros({kv_width, 8});
    tensors[block + "v_proj.weight"] = bf16_zeros({kv_width, 8});
    tensors[block + "attn_out.weight"] = bf16_zeros({8, 8});
    tensors[block + "ff_norm.weight"] = bf16_zeros({8});
    tensors[block + "ff_proj.weight"] = bf16_zeros({16, 8});
    tensors[block + "up_proj.weight"] = bf16_zeros({16, 8});
    tensors[block + "ff_out.weight"] = bf16_zeros({8, 16});
  }
  return tensors;
}

inline void write_checkpoint(const std::filesystem::path& directory, const Json& config,
                             const TestTensors& tensors) {
  write_text(directory / "config.json", config.dump());
  write_text(directory / "model.safetensors", safetensors_file(tensors));
}

/// Opens a checkpoint of these parts and returns its configuration.
inline ModelConfig config_of(const Json& config, const TestTensors& tensors = tiny_tensors(),
                             const Json& generation = Json()) {
  const TemporaryFolder directory;
  write_checkpoint(directory.path(), config, tensors);
  if (!generation.is_null()) write_text(directory.path() / "generation_config.json", generation.dump());
  return Checkpoint::open(directory.path()).config();
}

/// tiny_config() with one key set to another value.
inline Json tiny_config_with(const std::string& key, const Json& value) {
  Json config = tiny_config();
  config[key] = value;
  return config;
}

inline Json tiny_config_without(const std::string& key) {
  Json config = tiny_config();
  config.erase(key);
  return config;
}

}  // namespace sinkscope
