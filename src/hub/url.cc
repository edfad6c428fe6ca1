#include "hub/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

namespace sinkscope {
namespace {

using UrlHandle = std::unique_ptr<CURLU, void (*)(CURLU*)>;

// "" when the address has no such part.
std::string part(CURLU* url, CURLUPart which, unsigned int flags) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return "";
  std::string result = text;
  curl_free(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 ||
                                       std::string_view("-._~").find(c) != std::string_view::npos ||
                                       kept.find(c) != std::string_view::npos);
    if (plain)
      result += c;
    else
      result += fmt::format("%{:02X}", byte);
  }
  return result;
}

std::string repository_url(const std::string& endpoint, const HubId& id) {
  return fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint, id.repository(),
                     percent_encoded(id.revision));
}

std::string file_url(const std::string& endpoint, const HubId& id, const std::string& commit,
                     const std::string& file) {
  return fmt::format("{}/{}/resolve/{}/{}", endpoint, id.repository(), commit, percent_encoded(file, "/"));
}

std::string origin_of(const std::string& url) {
  const UrlHandle handle(curl_url(), curl_url_cleanup);
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  const std::string scheme = part(handle.get(), CURLUPART_SCHEME, 0);
  const std::string host = part(handle.get(), CURLUPART_HOST, 0);
  if ((scheme != "http" && scheme != "https") || host.empty()) return "";
  return fmt::format("{}://{}:{}", scheme, host, part(handle.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

}  // namespace sinkscope
