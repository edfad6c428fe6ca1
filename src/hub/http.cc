#include "hub/http.h"

#include <curl/curl.h>
#include <sinkscope/error.h>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "checkpoint/message.h"
#include "hub/url.h"

namespace sinkscope {
namespace {

constexpr int most_redirects = 10;
// Slower than this for `timeout` seconds is as good as dead.
constexpr long slowest_bytes_per_second = 100;
constexpr long receive_buffer = 512 << 10;
// Of the body of an answer that is no file. More is not waited for.
constexpr std::size_t most_ignored_bytes = 64 << 10;

using HeaderList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

// One request's state, for libcurl's callbacks. They are called from C: exceptions wait here.
struct Exchange {
  CURL* curl;
  const HttpBody& body;
  const std::atomic<bool>& stop;
  bool begun = false;
  std::size_t ignored = 0;
  std::exception_ptr thrown = {};
};

std::string header(CURL* curl, const char* name) {
  curl_header* found = nullptr;
  return curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : "";
}

HttpHead head_of(CURL* curl) {
  HttpHead head;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &head.status);
  curl_off_t length = -1;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length >= 0) head.length = static_cast<std::uint64_t>(length);
  if (head.status == 206) head.range = parse_content_range(header(curl, "Content-Range"));
  return head;
}

bool has_wanted_body(long status) { return status == 200 || status == 206; }

void begin_body(Exchange& exchange) {
  if (exchange.begun) return;
  exchange.begun = true;
  exchange.body.begin(head_of(exchange.curl));
}

std::size_t on_bytes(const char* bytes, std::size_t size, std::size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const std::size_t length = size * count;
  long status = 0;
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
  if (!has_wanted_body(status)) {
    exchange.ignored += length;
    return exchange.ignored <= most_ignored_bytes ? length : 0;
  }
  try {
    begin_body(exchange);
    exchange.body.write(std::as_bytes(std::span(bytes, length)));
    return length;
  } catch (...) {
    exchange.thrown = std::current_exception();
    return 0;
  }
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(context)->stop ? 1 : 0;
}

HttpFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::none;
    case CURLE_ABORTED_BY_CALLBACK:
      return HttpFailure::stopped;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::unreachable;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return HttpFailure::insecure;
    default:
      return HttpFailure::broken;
  }
}

void start_libcurl_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Error("libcurl cannot be started");
  });
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

struct HttpSession::Handle {
  std::unique_ptr<CURL, void (*)(CURL*)> curl{curl_easy_init(), curl_easy_cleanup};
  char message[CURL_ERROR_SIZE] = "";
};

HttpSession::HttpSession(HttpSettings settings, const std::atomic<bool>& stop)
    : settings_(std::move(settings)), stop_(stop) {
  start_libcurl_once();
  handle_ = std::make_unique<Handle>();
  CURL* curl = handle_->curl.get();
  if (curl == nullptr) throw Error("libcurl cannot be started");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle_->message);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // threads
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "sinkscope/" SINKSCOPE_VERSION);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // get() does, and decides who sees the token
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings_.timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.timeout));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, slowest_bytes_per_second);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, receive_buffer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  // The variables that the curl program and OpenSSL know.
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0')
      curl_easy_setopt(curl, CURLOPT_CAINFO, file);
}

HttpSession::~HttpSession() = default;

// One request, redirects not followed.
HttpAnswer HttpSession::request(const std::string& address, std::uint64_t offset, const HttpBody& body) {
  CURL* curl = handle_->curl.get();
  // The bytes as they lie there: a compressed answer has neither their size nor their offsets.
  const HeaderList headers(curl_slist_append(nullptr, "Accept-Encoding: identity"), curl_slist_free_all);
  if (!settings_.token.empty() && origin_of(address) == origin_of(settings_.endpoint))
    curl_slist_append(headers.get(), ("Authorization: Bearer " + settings_.token).c_str());
  const std::string range = std::to_string(offset) + "-";
  Exchange exchange{.curl = curl, .body = body, .stop = stop_};
  handle_->message[0] = '\0';
  curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_RANGE, offset > 0 ? range.c_str() : nullptr);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  if (code == CURLE_WRITE_ERROR && exchange.ignored > most_ignored_bytes) code = CURLE_OK;

  HttpAnswer answer;
  answer.head = head_of(curl);
  answer.failure = failure_of(code);
  if (code != CURLE_OK) {
    answer.reason = handle_->message[0] != '\0' ? handle_->message : curl_easy_strerror(code);
    return answer;
  }
  if (has_wanted_body(answer.head.status)) begin_body(exchange);
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) answer.retry_after = seconds;
  answer.error_code = header(curl, "X-Error-Code");
  answer.error_message = header(curl, "X-Error-Message");
  return answer;
}

HttpAnswer HttpSession::get(const std::string& url, std::uint64_t offset, const HttpBody& body) {
  std::string address = url;
  for (int redirects = 0; redirects <= most_redirects; ++redirects) {
    HttpAnswer answer = request(address, offset, body);
    if (answer.failure != HttpFailure::none || !is_redirect(answer.head.status)) return answer;
    char* found = nullptr;
    curl_easy_getinfo(handle_->curl.get(), CURLINFO_REDIRECT_URL, &found);
    const std::string next = found == nullptr ? "" : found;
    if (origin_of(next).empty()) throw Error("{} redirects to no http address", in_quotes(address));
    if (address.starts_with("https:") && !next.starts_with("https:"))
      throw Error("{} redirects from https to http", in_quotes(address));
    address = next;
  }
  throw Error("{} redirects more than {} times", in_quotes(url), most_redirects);
}

}  // namespace sinkscope
