#include "train/training_checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <sinkscope/error.h>
#include <sinkscope/safetensors.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "base/new_folder.h"
#include "checkpoint/safetensors_writer.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_file = "training_state.safetensors";

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

std::span<const std::byte> bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.data_ptr()),
          static_cast<std::size_t>(contiguous.numel() * contiguous.element_size())};
}

void write_tensors(const fs::path& file, const std::vector<NamedTensor>& tensors, DType dtype,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<StoredTensor> header;
  for (const NamedTensor& tensor : tensors)
    header.push_back({tensor.name, dtype, tensor.value.sizes().vec()});
  SafetensorsWriter writer(file, header, metadata);
  const at::ScalarType type = dtype == DType::bf16 ? at::kBFloat16 : at::kFloat;
  for (const NamedTensor& tensor : tensors)
    writer.write(bytes_of(tensor.value.detach().to(at::kCPU, type).contiguous()));
  writer.finish();
}

// Every tensor of the state under its name in the file.
std::vector<NamedTensor> state_tensors(const TrainingState& state) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](const char* kind, std::size_t i, const at::Tensor& value) {
    tensors.push_back({kind + state.model.parameters[i].name, value});
  };
  for (std::size_t i = 0; i < state.model.parameters.size(); ++i) {
    add("weight:", i, state.model.parameters[i].value);
    add("first_moment:", i, state.first_moment[i]);
    add("second_moment:", i, state.second_moment[i]);
    if (!state.average.empty()) add("average:", i, state.average[i]);
  }
  return tensors;
}

void write_model(const TrainConfig& config, const TrainingState& state, const fs::path& folder) {
  std::vector<NamedTensor> weights;
  for (std::size_t i = 0; i < state.model.parameters.size(); ++i) {
    const NamedParameter& parameter = state.model.parameters[i];
    weights.push_back({parameter.name, state.average.empty() ? parameter.value : state.average[i]});
  }
  write_tensors(folder / "model.safetensors", weights, config.model.weights_dtype, {{"format", "pt"}});
  const ModelShape& shape = state.model.shape;
  write_file_atomically(folder / "config.json", shape.config_json(shape.config).dump(2) + "\n");
  write_file_atomically(folder / "generation_config.json",
                        shape.generation_json(shape.config).dump(2) + "\n");
}

// "step-00001000" -> 1000.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = "step-";
  std::int64_t step = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && parsed == end ? std::optional(step) : std::nullopt;
}

void point_latest_at(const fs::path& run, const fs::path& checkpoint) {
  const fs::path temporary = run / "latest.tmp";
  fs::remove(temporary);
  fs::create_directory_symlink(fs::relative(checkpoint, run), temporary);
  fs::rename(temporary, run / "latest");
}

void copy_elements(const TensorView& from, const fs::path& file, const std::string& name,
                   const at::Tensor& to) {
  if (from.dtype != DType::f32 || from.shape != to.sizes().vec())
    throw Error("{}: tensor {} is not float32 of shape {}", file.string(), name,
                shape_text(to.sizes().vec()));
  at::Tensor values = at::empty(to.sizes(), at::TensorOptions(at::kFloat));
  std::memcpy(values.data_ptr(), from.bytes.data(), from.bytes.size());
  to.copy_(values);
}

std::string metadata_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

}  // namespace

TrainingState new_state(const TrainConfig& config, const at::Device& device) {
  TrainingState state{new_model(config.model, config.seed, device), {}, {}, {}, 0};
  for (const NamedParameter& parameter : state.model.parameters) {
    state.first_moment.push_back(at::zeros_like(parameter.value.detach()));
    state.second_moment.push_back(at::zeros_like(parameter.value.detach()));
    if (config.optimizer.ema) state.average.push_back(parameter.value.detach().clone());
  }
  return state;
}

fs::path checkpoint_folder(const fs::path& run, std::int64_t step) {
  return run / "checkpoints" / fmt::format("step-{:08}", step);
}

std::vector<std::int64_t> resumable_steps(const fs::path& run) {
  std::vector<std::int64_t> steps;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", failed))
    if (const auto step = step_of(entry.path().filename().string());
        step && fs::exists(entry.path() / state_file))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

void write_checkpoint(const TrainConfig& config, const TrainingState& state, const fs::path& run,
                      const fs::path& tokenizer_folder) {
  const fs::path place = checkpoint_folder(run, state.step);
  if (!fs::exists(place)) {
    NewFolder folder(place);
    write_model(config, state, folder.path());
    for (const auto& entry : fs::directory_iterator(tokenizer_folder))
      fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    write_tensors(folder.path() / state_file, state_tensors(state), DType::f32,
                  {{"step", std::to_string(state.step)}, {"fingerprint", config.fingerprint}});
    folder.finish();
  }
  point_latest_at(run, place);
  const std::vector<std::int64_t> steps = resumable_steps(run);
  for (std::size_t i = 0; i + static_cast<std::size_t>(config.keep) < steps.size(); ++i)
    fs::remove(checkpoint_folder(run, steps[i]) / state_file);
}

TrainingState read_checkpoint(const TrainConfig& config, const fs::path& run, std::int64_t step,
                              const at::Device& device) {
  const SafetensorsFile file(checkpoint_folder(run, step) / state_file);
  if (metadata_of(file, "fingerprint") != config.fingerprint)
    throw Error("{} is of a run with another config than {}; another --out would be right",
                file.path().string(), config.file.string());
  TrainingState state = new_state(config, device);
  const at::NoGradGuard no_gradients;
  for (const NamedTensor& tensor : state_tensors(state))
    copy_elements(file.tensor(tensor.name), file.path(), tensor.name, tensor.value);
  state.step = step;
  return state;
}

}  // namespace sinkscope
