// GET requests with libcurl: one session a thread, which keeps its connections.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hub/content_range.h"

namespace sinkscope {

struct HttpSettings {
  int timeout = 30;   // seconds for a connection, and without a byte worth the name
  std::string token;  // sent only to `endpoint`'s scheme, host and port
  std::string endpoint;
};

/// What an answer said before its body.
struct HttpHead {
  long status = 0;
  std::optional<std::uint64_t> length;  // Content-Length
  std::optional<ContentRange> range;    // Content-Range of a 206
};

/// Where a 200's or 206's body goes. What they throw ends the request and is thrown from get().
struct HttpBody {
  std::function<void(const HttpHead&)> begin;  // before the first byte, or at the end of an empty body
  std::function<void(std::span<const std::byte>)> write;
};

enum class HttpFailure {
  none,         // there is an answer, whatever its status
  unreachable,  // no name, no connection
  insecure,     // no TLS connection that can be trusted
  broken,       // cut, silent or garbled
  stopped       // `stop` was set
};

struct HttpAnswer {
  HttpHead head;
  HttpFailure failure = HttpFailure::none;
  std::string reason;                       // of a failure, in libcurl's words
  std::optional<std::int64_t> retry_after;  // seconds
  std::string error_code;                   // X-Error-Code: "GatedRepo", "RepoNotFound", ...
  std::string error_message;                // X-Error-Message
};

class HttpSession {
 public:
  /// `stop` may be set by another thread; it ends a request within a second.
  HttpSession(HttpSettings settings, const std::atomic<bool>& stop);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /// Follows redirects. `offset` > 0 asks for the bytes from there on. Throws Error for a redirect that leads
  /// nowhere or from https to http.
  HttpAnswer get(const std::string& url, std::uint64_t offset, const HttpBody& body);

 private:
  struct Handle;
  HttpAnswer request(const std::string& address, std::uint64_t offset, const HttpBody& body);

  HttpSettings settings_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace sinkscope
