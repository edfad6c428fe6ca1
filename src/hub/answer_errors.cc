#include "hub/answer_errors.h"

#include <fmt/format.h>

#include "checkpoint/message.h"

namespace sinkscope {
namespace {

// huggingface.co answers 401 to a stranger who asks for a repository that does not exist, lest he learn which
// do.
std::string explain_unauthorised(const RequestSubject& subject) {
  if (subject.has_token)
    return fmt::format("the hub refuses the token (401) for {}; HF_TOKEN should hold one that may read it",
                       subject.text());
  return fmt::format(
      "there is no {}, or it is private or gated (401); check the id, or give a token that may read it in "
      "HF_TOKEN",
      subject.text());
}

std::string explain_gated(const RequestSubject& subject, long status) {
  return fmt::format("{} is gated ({}); accept its terms at {}/{} and give {} in HF_TOKEN", subject.text(),
                     status, subject.endpoint, subject.id.repository(),
                     subject.has_token ? "a token of the account that did" : "that account's token");
}

std::string explain_missing(const HttpAnswer& answer, const RequestSubject& subject) {
  if (answer.error_code == "RepoNotFound")
    return fmt::format("there is no repository {} at {} (404)", subject.id.repository(), subject.endpoint);
  if (answer.error_code == "RevisionNotFound")
    return fmt::format("{} has no revision {} at {} (404)", subject.id.repository(), subject.id.revision,
                       subject.endpoint);
  if (!subject.file.empty())
    return fmt::format("there is no {} at {} (404)", subject.text(), subject.endpoint);
  return fmt::format("there is no repository {}, or no revision {} of it, at {} (404)",
                     subject.id.repository(), subject.id.revision, subject.endpoint);
}

std::string explain_status(const HttpAnswer& answer, const RequestSubject& subject) {
  const long status = answer.head.status;
  if (answer.error_code == "GatedRepo") return explain_gated(subject, status);
  if (status == 401) return explain_unauthorised(subject);
  if (status == 403)
    return fmt::format(
        "the hub does not give {} to {} (403); a token that may read it in HF_TOKEN would be right",
        subject.text(), subject.has_token ? "this token" : "somebody without a token");
  if (status == 404) return explain_missing(answer, subject);
  if (status == 429)
    return fmt::format("the hub answers too many requests (429) for {}; try later{}", subject.text(),
                       subject.has_token ? "" : ", a token in HF_TOKEN raises the limit");
  if (status >= 500)
    return fmt::format("the hub is in trouble ({}) with {}; try later", status, subject.text());
  return fmt::format("the hub answers {} for {}", status, subject.text());
}

std::string explain_failure(const HttpAnswer& answer, const RequestSubject& subject) {
  const std::string reason = answer.reason;
  if (answer.failure == HttpFailure::unreachable)
    return fmt::format("cannot reach {} for {} ({}); check the network, the proxy and HF_ENDPOINT",
                       subject.endpoint, subject.text(), reason);
  if (answer.failure == HttpFailure::insecure)
    return fmt::format(
        "no trustworthy TLS connection for {} ({}); CURL_CA_BUNDLE may name the certificates of a proxy",
        subject.text(), reason);
  return fmt::format("the download of {} broke off ({})", subject.text(), reason);
}

}  // namespace

std::string RequestSubject::text() const { return file.empty() ? id.text() : file + " of " + id.text(); }

std::string explain_answer(const HttpAnswer& answer, const RequestSubject& subject) {
  if (answer.failure != HttpFailure::none) return explain_failure(answer, subject);
  const std::string sentence = explain_status(answer, subject);
  if (answer.error_message.empty()) return sentence;
  return fmt::format("{}; it says {}", sentence, in_quotes(answer.error_message));
}

}  // namespace sinkscope
