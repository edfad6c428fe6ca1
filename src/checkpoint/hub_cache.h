// Ids of the Hugging Face hub, and where its files lie in the local cache: the rules of Python's
// huggingface_hub. docs/hub.md has the layout.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sinkscope {

/// ORG/NAME@REVISION; revision "main" when none is given.
struct HubId {
  std::string organisation;
  std::string name;
  std::string revision;

  /// ORG/NAME
  std::string repository() const { return organisation + "/" + name; }
  /// What parse_hub_id reads back: ORG/NAME, with @REVISION where that is not main.
  std::string text() const { return repository() + (revision == "main" ? "" : "@" + revision); }
};

/// A path component that cannot leave its folder: letters, digits, '.', '_', '-', not beginning with '.'.
bool is_plain_name(std::string_view text);

/// 40 lower-case hexadecimal digits.
bool is_commit(std::string_view text);

/// None when the text is no id. LLaDA, Dream and MMaDA are ids too.
std::optional<HubId> parse_hub_id(std::string_view text);

/// A leading ~ is HOME; $NAME and ${NAME} are variables, those that are not set stay as they are.
std::filesystem::path expand_path(std::string_view text);

/// expand_path of a variable; empty when it is unset or empty.
std::filesystem::path path_from_environment(const char* name);

/// HF_HOME, else XDG_CACHE_HOME or ~/.cache + huggingface; empty when the environment names none.
std::filesystem::path hub_home();

/// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE (its old name), else hub_home()/hub; empty as hub_home().
std::filesystem::path hub_cache_folder();

/// CACHE/models--ORG--NAME
std::filesystem::path repository_folder(const std::filesystem::path& cache, const HubId& id);

/// The snapshot that a commit, branch or tag leads to, none when there is none. Throws Error when refs/
/// holds something that is no commit.
std::optional<std::filesystem::path> find_snapshot(const std::filesystem::path& repository,
                                                   const std::string& revision);

/// "; `sinkscope fetch ...` completes it" for a folder in a hub cache, "" for any other.
std::string fetch_advice(const std::filesystem::path& directory);

}  // namespace sinkscope
