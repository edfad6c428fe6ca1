// Checkpoints in the Hugging Face layout: config.json and safetensors files in one folder.
// docs/checkpoints.md says what is read, checked and refused.
#pragma once

#include <sinkscope/model_config.h>
#include <sinkscope/safetensors.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// A model's configuration and weights. Weights stay in their files (memory-mapped); views live as long as
/// this object. Movable, not copyable.
class Checkpoint {
 public:
  /// Reads config.json, generation_config.json when there, and the headers of model.safetensors or of the
  /// shards that model.safetensors.index.json names. Throws Error naming the file, key or tensor when
  /// something is missing, broken, surplus, of the wrong shape or not supported.
  static Checkpoint open(const std::filesystem::path& directory);

  const ModelConfig& config() const { return config_; }
  /// Every tensor of all weight files by its full name, the ignored head of a tied model included.
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  /// Null when there is no tensor of this name.
  const TensorView* find(std::string_view name) const;
  /// Throws Error naming the checkpoint and the tensor when it is not there.
  const TensorView& tensor(std::string_view name) const;

  const std::filesystem::path& directory() const { return directory_; }
  /// directory()/config.json.
  std::filesystem::path config_file() const;
  /// The safetensors files, sorted by file name.
  std::vector<std::filesystem::path> weight_files() const;

 private:
  Checkpoint() = default;

  std::filesystem::path directory_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  ModelConfig config_;
};

/// Lower-case hexadecimal SHA-256 over the bytes of the files, one after the other in the given order.
/// run.json's weights_sha256 is that of Checkpoint::weight_files(): of one file its ordinary checksum, of
/// shards that of their concatenation in the order of their names. Reads every byte. Throws Error naming a
/// file that cannot be read.
std::string sha256_of_files(std::span<const std::filesystem::path> files);
/// The same of a text.
std::string sha256_of_text(std::string_view text);

/// The folder of a model: an existing directory, a built-in name, an alias (LLaDA, Dream, MMaDA) or a Hugging
/// Face id ORG/NAME[@REVISION] in the local hub cache. Downloads nothing. Throws Error saying where it was
/// looked for when it is not found, UsageError when the name cannot be one.
std::filesystem::path locate_model(std::string_view name);

}  // namespace sinkscope
