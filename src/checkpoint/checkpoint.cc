#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/foreign_content.h"
#include "base/json.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/message.h"
#include "checkpoint/read_config.h"
#include "checkpoint/weight_index.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";
// config.json has kilobytes; an index of a million tensors some 100 MB.
constexpr std::uintmax_t largest_config = std::uintmax_t{16} << 20;
constexpr std::uintmax_t largest_index = std::uintmax_t{256} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Json read_config_file(const fs::path& path) {
  const std::string text = read_file(path, largest_config);
  if (const auto foreign = foreign_content(text)) throw Error("{} is {}", path.string(), *foreign);
  return parse_json(text, path.string());
}

// Opens every shard the index names, once each. In the order of their names, as std::set gives it.
std::vector<SafetensorsFile> open_shards(const std::map<std::string, std::string>& weight_map,
                                         const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& [tensor, shard] : weight_map) names.insert(shard);
  std::vector<std::string> missing;
  for (const std::string& name : names)
    if (!is_there(directory / name)) missing.push_back(name);
  if (!missing.empty())
    throw Error("{} lacks {} of the {} files that {} names: {}{}", directory.string(), missing.size(),
                names.size(), index_file, listed(missing), fetch_advice(directory));
  std::vector<SafetensorsFile> shards;
  shards.reserve(names.size());
  for (const std::string& name : names) shards.emplace_back(directory / name);
  return shards;
}

// The index and the shards must name the same tensors in the same places.
void check_index(const std::map<std::string, std::string>& weight_map,
                 const std::vector<SafetensorsFile>& shards, const fs::path& directory) {
  std::map<std::string, const SafetensorsFile*> by_name;
  for (const SafetensorsFile& shard : shards) by_name.emplace(shard.path().filename().string(), &shard);
  std::vector<std::string> absent;
  for (const auto& [tensor, shard] : weight_map)
    if (by_name.at(shard)->find(tensor) == nullptr)
      absent.push_back(fmt::format("{} in {}", in_quotes(tensor), shard));
  if (!absent.empty())
    throw Error("{} names tensors that its files do not hold: {}", (directory / index_file).string(),
                listed(absent));
  std::vector<std::string> unlisted;
  for (const SafetensorsFile& shard : shards)
    for (const auto& [tensor, view] : shard.tensors()) {
      const auto entry = weight_map.find(tensor);
      const std::string here = shard.path().filename().string();
      if (entry == weight_map.end())
        unlisted.push_back(fmt::format("{} in {}", in_quotes(tensor), here));
      else if (entry->second != here)
        unlisted.push_back(fmt::format("{} in {} (it names {})", in_quotes(tensor), here, entry->second));
    }
  if (!unlisted.empty())
    throw Error("{} does not name tensors that its files hold: {}", (directory / index_file).string(),
                listed(unlisted));
}

// model.safetensors first, as the Hugging Face library does; an index beside it is then not read.
std::vector<SafetensorsFile> open_weights(const fs::path& directory) {
  if (is_there(directory / single_file)) {
    std::vector<SafetensorsFile> files;
    files.emplace_back(directory / single_file);
    return files;
  }
  if (is_there(directory / index_file)) {
    const std::string where = (directory / index_file).string();
    const auto weight_map = parse_weight_index(read_file(directory / index_file, largest_index), where);
    std::vector<SafetensorsFile> shards = open_shards(weight_map, directory);
    check_index(weight_map, shards, directory);
    return shards;
  }
  const bool has_pickle =
      is_there(directory / "pytorch_model.bin") || is_there(directory / "pytorch_model.bin.index.json");
  throw Error(
      "{} holds no weights: {} or {} should be there{}", directory.string(), single_file, index_file,
      has_pickle ? "; pytorch_model.bin is not read, convert it to safetensors" : fetch_advice(directory));
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    throw Error("{} is not a directory; a checkpoint is a directory with config.json and {}",
                directory.string(), single_file);
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  const fs::path config_path = checkpoint.config_file();
  if (!is_there(config_path))
    throw Error("{} holds no config.json; a checkpoint is a directory with config.json and {}{}",
                directory.string(), single_file, fetch_advice(directory));
  const Json config = read_config_file(config_path);
  const fs::path generation_path = directory / "generation_config.json";
  const Json generation = is_there(generation_path) ? read_config_file(generation_path) : Json();

  checkpoint.files_ = open_weights(directory);
  // No tensor stands in two files: a single file's names are unique, and check_index refuses the second of
  // two shards.
  for (const SafetensorsFile& file : checkpoint.files_)
    checkpoint.tensors_.insert(file.tensors().begin(), file.tensors().end());
  checkpoint.config_ = read_model_config(config, generation, checkpoint.tensors_, directory.string());
  return checkpoint;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& Checkpoint::tensor(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  throw Error("{} has no tensor {}", directory_.string(), in_quotes(name));
}

fs::path Checkpoint::config_file() const { return directory_ / "config.json"; }

std::vector<fs::path> Checkpoint::weight_files() const {
  std::vector<fs::path> paths;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

}  // namespace sinkscope
