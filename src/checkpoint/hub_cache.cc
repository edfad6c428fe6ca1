#include "checkpoint/hub_cache.h"

#include <fmt/format.h>
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

constexpr std::string_view folder_prefix = "models--";
constexpr std::string_view folder_separator = "--";
constexpr std::size_t longest_name = 96;  // the hub's

// What the hub forbids besides: "--" would make two ids share a folder.
bool is_hub_name(std::string_view text) {
  return is_plain_name(text) && text.size() <= longest_name && text.find("--") == std::string_view::npos &&
         text.find("..") == std::string_view::npos && !text.starts_with('-') && !text.ends_with('-') &&
         !text.ends_with('.');
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

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

bool is_variable_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Takes $NAME or ${NAME} off the front of `rest` and returns what stands for it.
std::string take_variable(std::string_view& rest) {
  const bool braces = rest.starts_with("${");
  const std::size_t begin = braces ? 2 : 1;
  std::size_t end = begin;
  while (end < rest.size() && is_variable_character(rest[end])) ++end;
  const std::size_t after = braces ? end + 1 : end;
  const bool named = end > begin && (!braces || (end < rest.size() && rest[end] == '}'));
  const std::string name(rest.substr(begin, end - begin));
  const bool set = named && std::getenv(name.c_str()) != nullptr;
  const std::string text = set ? variable(name) : std::string(rest.substr(0, named ? after : 1));
  rest.remove_prefix(named ? after : 1);
  return text;
}

// The commit a branch or tag points at, "" when there is no such reference.
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

}  // namespace

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  });
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<HubId> parse_hub_id(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view revision = at == std::string_view::npos ? "main" : text.substr(at + 1);
  std::string_view path = text.substr(0, at);
  for (const Alias& alias : aliases)
    if (alias.name == path) path = alias.id;
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  HubId id{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)), std::string(revision)};
  if (!is_hub_name(id.organisation) || !is_hub_name(id.name) || !is_plain_revision(id.revision))
    return std::nullopt;
  return id;
}

fs::path expand_path(std::string_view text) {
  std::string result;
  if (text == "~" || text.starts_with("~/")) {
    result = variable("HOME");
    if (!result.empty()) text.remove_prefix(1);
  }
  while (!text.empty()) {
    if (text.front() == '$') {
      result += take_variable(text);
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

fs::path path_from_environment(const char* name) { return expand_path(variable(name)); }

fs::path hub_home() {
  if (fs::path home = path_from_environment("HF_HOME"); !home.empty()) return home;
  if (const fs::path xdg = path_from_environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "huggingface";
  const fs::path user = variable("HOME");
  return user.empty() ? fs::path() : user / ".cache" / "huggingface";
}

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (fs::path cache = path_from_environment(name); !cache.empty()) return cache;
  const fs::path home = hub_home();
  return home.empty() ? fs::path() : home / "hub";
}

fs::path repository_folder(const fs::path& cache, const HubId& id) {
  return cache / fmt::format("{}{}{}{}", folder_prefix, id.organisation, folder_separator, id.name);
}

std::optional<fs::path> find_snapshot(const fs::path& repository, const std::string& revision) {
  const fs::path snapshots = repository / "snapshots";
  // A full commit is its own snapshot; a branch or tag points at one.
  if (revision.find('/') == std::string::npos && is_folder(snapshots / revision)) return snapshots / revision;
  const std::string commit = commit_of(repository, revision);
  if (!commit.empty() && is_folder(snapshots / commit)) return snapshots / commit;
  return std::nullopt;
}

std::string fetch_advice(const fs::path& directory) {
  std::error_code failed;
  fs::path snapshot = fs::absolute(directory, failed).lexically_normal();
  if (!snapshot.has_filename()) snapshot = snapshot.parent_path();
  const std::string commit = snapshot.filename().string();
  const std::string folder = snapshot.parent_path().parent_path().filename().string();
  if (failed || !is_commit(commit) || snapshot.parent_path().filename() != "snapshots" ||
      !folder.starts_with(folder_prefix))
    return "";
  std::string repository = folder.substr(folder_prefix.size());
  const std::size_t separator = repository.find(folder_separator);
  if (separator == std::string::npos) return "";
  repository.replace(separator, folder_separator.size(), "/");
  const auto id = parse_hub_id(repository + "@" + commit);
  return id ? fmt::format("; `sinkscope fetch {}` completes it", id->text()) : "";
}

}  // namespace sinkscope
