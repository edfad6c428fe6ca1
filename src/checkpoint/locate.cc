#include "checkpoint/locate.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "checkpoint/hub_cache.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path locate_in_hub(const HubId& id, const fs::path& cache) {
  if (cache.empty())
    throw Error("no model {}: neither HF_HUB_CACHE, HF_HOME nor HOME says where the hub cache is", id.text());
  const fs::path repository = repository_folder(cache, id);
  if (!is_folder(repository))
    throw Error(
        "no model {}: it is no directory, and the hub cache {} does not hold it; `sinkscope fetch {}` "
        "downloads it there",
        id.text(), cache.string(), id.text());
  if (auto snapshot = find_snapshot(repository, id.revision)) return *snapshot;
  throw Error(
      "no revision {} of {} in the hub cache: neither {} nor {} leads to a snapshot; `sinkscope fetch {}` "
      "downloads it there",
      id.revision, id.repository(), (repository / "snapshots" / id.revision).string(),
      (repository / "refs" / id.revision).string(), id.text());
}

// Names of the built-in models that are there; what holds no config.json is something else beside them.
std::vector<std::string> built_in_names(const ModelPlaces& places) {
  std::vector<std::string> names;
  for (const fs::path& place : places.built_in) {
    std::error_code failed;
    for (fs::directory_iterator entry(place, failed), end; !failed && entry != end; entry.increment(failed))
      if (is_file(entry->path() / "config.json")) names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

[[noreturn]] void refuse(std::string_view name, const ModelPlaces& places) {
  std::vector<std::string> looked_in;
  for (const fs::path& place : places.built_in) looked_in.push_back(place.string());
  const std::vector<std::string> built_in = built_in_names(places);
  throw Error(
      "no model {}: it is neither a directory nor a built-in model ({}; looked for in {}) nor a Hugging Face "
      "id like GSAI-ML/LLaDA-8B-Instruct",
      in_quotes(name), built_in.empty() ? "there are none" : listed(built_in),
      looked_in.empty() ? "no folder" : listed(looked_in));
}

}  // namespace

ModelPlaces model_places() {
  ModelPlaces places;
  if (const char* own = std::getenv("SINKSCOPE_MODELS"); own != nullptr && *own != '\0')
    places.built_in.emplace_back(own);
  // An installed program finds its share/ even when the tree was moved after the build.
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed)
    places.built_in.push_back(program.parent_path().parent_path() / "share" / "sinkscope" / "models");
  places.built_in.emplace_back(SINKSCOPE_INSTALLED_MODELS);
  places.built_in.emplace_back(SINKSCOPE_SOURCE_MODELS);

  places.hub_cache = hub_cache_folder();
  return places;
}

fs::path locate_model(std::string_view name, const ModelPlaces& places) {
  if (name.empty())
    throw UsageError(
        "the name of the model is empty; a directory, a built-in name or a Hugging Face id would be right");
  if (name.find('\0') != std::string_view::npos) throw UsageError("the name of the model holds a zero byte");
  const fs::path as_path(name);
  if (is_folder(as_path)) return as_path;
  std::error_code ignored;
  if (fs::exists(as_path, ignored))
    throw Error("{} is a file; a model is the directory that holds config.json", as_path.string());
  const auto id = parse_hub_id(name);
  if (!id && is_plain_name(name))
    for (const fs::path& place : places.built_in)
      if (is_folder(place / name)) return place / name;
  if (id) return locate_in_hub(*id, places.hub_cache);
  refuse(name, places);
}

fs::path locate_model(std::string_view name) { return locate_model(name, model_places()); }

}  // namespace sinkscope
