#include "checkpoint/locate.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>

#include "base/files.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

struct Alias {
  std::string_view name;
  std::string_view id;
};
constexpr Alias aliases[] = {{"LLaDA", "GSAI-ML/LLaDA-8B-Instruct"},
                             {"Dream", "Dream-org/Dream-v0-Instruct-7B"},
                             {"MMaDA", "Gen-Verse/MMaDA-8B-MixCoT"}};

// ORG/NAME@REVISION; revision "main" when none is given.
struct HubId {
  std::string organisation;
  std::string name;
  std::string revision;
};

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

fs::path from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fs::path() : fs::path(value);
}

// A path component that cannot leave its folder: letters, digits, '.', '_', '-', not beginning with '.'.
bool is_plain_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  });
}

// A revision may hold slashes (refs/pr/1); every part has to be plain.
bool is_plain_revision(std::string_view text) {
  while (true) {
    const std::size_t slash = text.find('/');
    if (!is_plain_name(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

std::optional<HubId> parse_hub_id(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view revision = at == std::string_view::npos ? "main" : text.substr(at + 1);
  const std::string_view path = text.substr(0, at);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const HubId id{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)),
                 std::string(revision)};
  if (!is_plain_name(id.organisation) || !is_plain_name(id.name) || !is_plain_revision(id.revision))
    return std::nullopt;
  return id;
}

// The commit a branch or tag points at: one plain name in refs/REVISION.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  const fs::path reference = repository / "refs" / revision;
  std::error_code ignored;
  if (!fs::is_regular_file(reference, ignored)) return "";
  std::string commit = read_file(reference, 4096);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0) commit.pop_back();
  if (!is_plain_name(commit))
    throw Error("{} should hold a commit, not {}", reference.string(), in_quotes(commit));
  return commit;
}

fs::path locate_in_hub(const HubId& id, const fs::path& cache) {
  const std::string full_name = id.organisation + "/" + id.name;
  if (cache.empty())
    throw Error("no model {}: neither HF_HUB_CACHE, HF_HOME nor HOME says where the hub cache is", full_name);
  const fs::path repository = cache / fmt::format("models--{}--{}", id.organisation, id.name);
  if (!is_folder(repository))
    throw Error(
        "no model {}: it is no directory, and the hub cache {} does not hold it; download it there or give "
        "its directory",
        full_name, cache.string());
  const fs::path snapshots = repository / "snapshots";
  // A full commit is its own snapshot; a branch or tag points at one.
  if (id.revision.find('/') == std::string::npos && is_folder(snapshots / id.revision))
    return snapshots / id.revision;
  const std::string commit = commit_of(repository, id.revision);
  if (!commit.empty() && is_folder(snapshots / commit)) return snapshots / commit;
  throw Error("no revision {} of {} in the hub cache: neither {} nor {} leads to a snapshot", id.revision,
              full_name, (snapshots / id.revision).string(), (repository / "refs" / id.revision).string());
}

// Names of the built-in models that are there.
std::vector<std::string> built_in_names(const ModelPlaces& places) {
  std::vector<std::string> names;
  for (const fs::path& place : places.built_in) {
    std::error_code failed;
    for (fs::directory_iterator entry(place, failed), end; !failed && entry != end; entry.increment(failed))
      if (is_folder(entry->path())) names.push_back(entry->path().filename().string());
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
  if (const fs::path own = from_environment("SINKSCOPE_MODELS"); !own.empty()) places.built_in.push_back(own);
  // An installed program finds its share/ even when the tree was moved after the build.
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed)
    places.built_in.push_back(program.parent_path().parent_path() / "share" / "sinkscope" / "models");
  places.built_in.emplace_back(SINKSCOPE_INSTALLED_MODELS);
  places.built_in.emplace_back(SINKSCOPE_SOURCE_MODELS);

  if (const fs::path cache = from_environment("HF_HUB_CACHE"); !cache.empty()) {
    places.hub_cache = cache;
  } else if (const fs::path home = from_environment("HF_HOME"); !home.empty()) {
    places.hub_cache = home / "hub";
  } else if (const fs::path xdg = from_environment("XDG_CACHE_HOME"); !xdg.empty()) {
    places.hub_cache = xdg / "huggingface" / "hub";
  } else if (const fs::path user = from_environment("HOME"); !user.empty()) {
    places.hub_cache = user / ".cache" / "huggingface" / "hub";
  }
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
  for (const Alias& alias : aliases)
    if (alias.name == name) name = alias.id;
  if (is_plain_name(name))
    for (const fs::path& place : places.built_in)
      if (is_folder(place / name)) return place / name;
  if (const auto id = parse_hub_id(name)) return locate_in_hub(*id, places.hub_cache);
  refuse(name, places);
}

fs::path locate_model(std::string_view name) { return locate_model(name, model_places()); }

}  // namespace sinkscope
