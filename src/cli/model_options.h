// The options that every command with a model has, and the model they lead to.
#pragma once

#include <sinkscope/transformer.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/option_table.h"

namespace sinkscope {

struct ModelOptions {
  std::string device = "cpu";
  std::string dtype;  // empty: the checkpoint's
  std::string weights = "native";
  std::optional<int> threads;
  bool quiet = false;
};

void declare_model_options(OptionTable& table, ModelOptions& options);

/// "cpu", "cuda" or "cuda:N". Throws UsageError when it is none of these or there is no such device.
at::Device parse_device(const std::string& name);

/// "f32", "bf16", "f16". Throws UsageError for others.
at::ScalarType parse_dtype(const std::string& name);

/// The reverse.
std::string_view dtype_option(at::ScalarType dtype);

/// The dtype to run in: --dtype, else the checkpoint's. Float16 does not run on the CPU: asked for, it is
/// refused; as the checkpoint's own it becomes float32, which `note` then says.
struct ComputeDtype {
  at::ScalarType type = at::kFloat;
  std::string note;
};
ComputeDtype choose_dtype(const ModelOptions& options, const ModelConfig& config, const at::Device& device);

/// Sets the threads, checks the device and the dtype. Everything that can be refused is refused here, before
/// weights are read.
struct Placement {
  at::Device device = at::kCPU;
  int threads = 1;
  WeightFormat weights = WeightFormat::native;
};
Placement place(const ModelOptions& options);

/// Throws UsageError where --weights cannot be had for the model: what load_model() would find later.
void check_weights(const Placement& placement, const ModelConfig& config);

/// Loads the weights, with progress on stderr.
Transformer load_model(std::shared_ptr<const Checkpoint> checkpoint, const Placement& placement,
                       at::ScalarType dtype, bool quiet);

/// One line on stderr unless quiet.
void note(bool quiet, const std::string& line);

}  // namespace sinkscope
