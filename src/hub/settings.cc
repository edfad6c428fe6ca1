#include "hub/settings.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>

#include "base/files.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/message.h"
#include "hub/url.h"

namespace sinkscope {
namespace {

constexpr const char* public_endpoint = "https://huggingface.co";
constexpr std::uintmax_t largest_token_file = 64 << 10;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string endpoint_from_environment() {
  std::string endpoint = variable("HF_ENDPOINT");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (endpoint.empty()) return public_endpoint;
  if (origin_of(endpoint).empty() || endpoint.find_first_of("?#") != std::string::npos)
    throw UsageError("HF_ENDPOINT is {}; an address like {} would be right", in_quotes(endpoint),
                     public_endpoint);
  return endpoint;
}

std::string without_spaces(const std::string& text) {
  const char* const spaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(spaces);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

// A line break in it would become a header of its own.
std::string checked_token(const std::string& text, const std::string& from) {
  std::string token = without_spaces(text);
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!plain) throw UsageError("{} holds no token: one is a word of letters, digits and signs", from);
  return token;
}

std::string token_from_environment() {
  if (is_true(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return "";
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (std::string token = checked_token(variable(name), name); !token.empty()) return token;
  std::filesystem::path file = path_from_environment("HF_TOKEN_PATH");
  if (file.empty() && !hub_home().empty()) file = hub_home() / "token";
  std::error_code ignored;
  if (file.empty() || !std::filesystem::exists(file, ignored)) return "";
  return checked_token(read_file(file, largest_token_file), file.string());
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  settings.endpoint = endpoint_from_environment();
  settings.cache = hub_cache_folder();
  if (settings.cache.empty())
    throw UsageError("neither HF_HUB_CACHE, HF_HOME nor HOME says where the hub cache is");
  settings.token = token_from_environment();
  settings.offline = is_true(variable("HF_HUB_OFFLINE")) || is_true(variable("TRANSFORMERS_OFFLINE"));
  return settings;
}

}  // namespace sinkscope
