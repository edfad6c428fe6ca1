#include "cli/model_options.h"

#include <sinkscope/error.h>
#include <torch/csrc/api/include/torch/cuda.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/progress.h"
#include "cli/threads.h"
#include "model/weights.h"

namespace sinkscope {

void declare_model_options(OptionTable& table, ModelOptions& options) {
  table.option("device", options.device, "cpu, cuda or cuda:N");
  table.option("dtype", options.dtype, "f32, bf16 or f16 (f16 on a GPU only) [the checkpoint's]")
      ->type_name("f32|bf16|f16");
  table.choice("weights", options.weights, {"native", "int8"},
               "native: in --dtype; int8: 8-bit integers, half the memory of bf16, CPU only");
  table.option("threads", options.threads, "CPU threads; results do not depend on it [physical cores]")
      ->type_name("N");
  table.flag("quiet", options.quiet, "no progress on stderr");
}

namespace {

// Which process of its machine this is, where a launcher of several says so: each takes a GPU of its own.
int local_rank() {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    int rank = 0;
    const char* const end = value + std::strlen(value);
    if (std::from_chars(value, end, rank).ptr != end || rank < 0)
      throw UsageError("the environment's {}={} is no rank; unset it, or give --device cuda:N", name, value);
    return rank;
  }
  return 0;
}

}  // namespace

at::Device parse_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  int index = 0;
  if (name != "cuda") {
    const char* digits = name.c_str() + 5;
    const char* end = name.c_str() + name.size();
    const bool numbered = name.starts_with("cuda:") && digits != end;
    if (!numbered || std::from_chars(digits, end, index).ptr != end || index < 0)
      throw UsageError("--device {} is unknown; it takes cpu, cuda or cuda:N", name);
  }
  const auto devices = static_cast<int>(torch::cuda::device_count());
  if (devices == 0)
    throw UsageError("--device {}: this machine or this libtorch has no CUDA device; use --device cpu", name);
  if (name == "cuda") index = local_rank() % devices;
  if (index >= devices)
    throw UsageError("--device {}: there are {} CUDA devices, numbered from 0", name, devices);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

at::ScalarType parse_dtype(const std::string& name) {
  if (name == "f32") return at::kFloat;
  if (name == "bf16") return at::kBFloat16;
  if (name == "f16") return at::kHalf;
  throw UsageError("--dtype {} is unknown; it takes f32, bf16 or f16", name);
}

std::string_view dtype_option(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bf16" : dtype == at::kHalf ? "f16" : "f32";
}

ComputeDtype choose_dtype(const ModelOptions& options, const ModelConfig& config, const at::Device& device) {
  if (!options.dtype.empty()) return {parse_dtype(options.dtype), ""};  // place() has refused f16 on the CPU
  if (config.weights_dtype == DType::bf16) return {at::kBFloat16, ""};
  if (config.weights_dtype != DType::f16) return {at::kFloat, ""};
  if (device.is_cpu())
    return {at::kFloat, "the checkpoint is float16, which does not run on the CPU: running in f32"};
  return {at::kHalf, ""};
}

Placement place(const ModelOptions& options) {
  if (!options.dtype.empty()) parse_dtype(options.dtype);
  Placement result;
  result.threads = options.threads.value_or(default_threads());
  use_threads(result.threads);
  result.device = parse_device(options.device);
  if (options.dtype == "f16" && result.device.is_cpu())
    throw UsageError("--dtype f16 does not run on the CPU; use --dtype f32 or --dtype bf16");
  result.weights = options.weights == "int8" ? WeightFormat::int8 : WeightFormat::native;
  if (result.weights == WeightFormat::int8 && !result.device.is_cpu())
    throw UsageError("--weights int8 runs on the CPU only; use --weights native with --device {}",
                     options.device);
  return result;
}

void check_weights(const Placement& placement, const ModelConfig& config) {
  TransformerOptions options;
  options.device = placement.device;
  options.weights = placement.weights;
  check_weight_format(config, options);
}

Transformer load_model(std::shared_ptr<const Checkpoint> checkpoint, const Placement& placement,
                       at::ScalarType dtype, bool quiet) {
  Progress progress("loading", quiet);
  TransformerOptions options;
  options.dtype = dtype;
  options.device = placement.device;
  options.weights = placement.weights;
  options.progress = [&](double share) { progress.show(share, ""); };
  Transformer model(std::move(checkpoint), options);
  progress.finish();
  return model;
}

void note(bool quiet, const std::string& line) {
  if (!quiet) std::fprintf(stderr, "sinkscope: %s\n", line.c_str());
}

}  // namespace sinkscope
