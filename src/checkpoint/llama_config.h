// Llama and those that share its key names (hidden_size, num_hidden_layers, ...) and its tensor names:
// Mistral, Qwen2, Qwen3, Dream, LLaDA-MoE.
#pragma once

#include <sinkscope/model_config.h>

#include <string>
#include <vector>

#include "checkpoint/config_keys.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

inline constexpr const char* llama_embedding = "model.embed_tokens.weight";
inline constexpr const char* llama_head = "lm_head.weight";

/// Every weight of such a model, in the order of their use.
std::vector<ExpectedTensor> llama_tensors(const ModelConfig& config);

// Each fills everything but family, architecture and ids, and checks every tensor. `checkpoint` names the
// folder.
void read_llama_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config);
/// Llama's layout with a variant of attention, and perhaps a window.
void read_llama_variant_config(const ConfigSource& source, const TensorMap& tensors,
                               const std::string& checkpoint, ModelConfig& config);
void read_mistral_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                         ModelConfig& config);
void read_qwen2_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config);
void read_qwen3_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config);
void read_dream_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config);
void read_llada_moe_config(const ConfigSource& source, const TensorMap& tensors,
                           const std::string& checkpoint, ModelConfig& config);

}  // namespace sinkscope
