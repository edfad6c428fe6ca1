#include "hub/answer_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinkscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const RequestSubject list{.id = {"a", "b", "v1"}, .file = "", .endpoint = "https://h", .has_token = false};
const RequestSubject file{
    .id = {"a", "b", "main"}, .file = "x.json", .endpoint = "https://h", .has_token = true};

HttpAnswer status(long number, const std::string& code = "", const std::string& message = "") {
  HttpAnswer answer;
  answer.head.status = number;
  answer.error_code = code;
  answer.error_message = message;
  return answer;
}

HttpAnswer failure(HttpFailure kind, const std::string& reason) {
  HttpAnswer answer;
  answer.failure = kind;
  answer.reason = reason;
  return answer;
}

TEST(AnswerErrors, SayWhatWouldBeRight) {
  EXPECT_THAT(explain_answer(status(401), list),
              AllOf(HasSubstr("a/b@v1"), HasSubstr("HF_TOKEN"), HasSubstr("401")));
  EXPECT_THAT(explain_answer(status(401), file),
              AllOf(HasSubstr("x.json of a/b"), HasSubstr("refuses the token")));
  EXPECT_THAT(explain_answer(status(403), file), AllOf(HasSubstr("403"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(explain_answer(status(403, "GatedRepo"), file),
              AllOf(HasSubstr("gated"), HasSubstr("https://h/a/b")));
  EXPECT_THAT(explain_answer(status(401, "GatedRepo"), list),
              AllOf(HasSubstr("gated"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(explain_answer(status(404, "RepoNotFound"), list), HasSubstr("no repository a/b"));
  EXPECT_THAT(explain_answer(status(404, "RevisionNotFound"), list), HasSubstr("a/b has no revision v1"));
  EXPECT_THAT(explain_answer(status(404), list),
              AllOf(HasSubstr("no repository a/b"), HasSubstr("no revision v1")));
  EXPECT_THAT(explain_answer(status(404, "EntryNotFound"), file), HasSubstr("no x.json of a/b"));
  EXPECT_THAT(explain_answer(status(429), list), HasSubstr("HF_TOKEN raises"));
  EXPECT_THAT(explain_answer(status(429), file), Not(HasSubstr("HF_TOKEN")));
  EXPECT_THAT(explain_answer(status(503), list), HasSubstr("in trouble (503)"));
  EXPECT_THAT(explain_answer(status(418), list), HasSubstr("418"));
  EXPECT_THAT(explain_answer(failure(HttpFailure::unreachable, "no name"), list),
              AllOf(HasSubstr("cannot reach https://h"), HasSubstr("no name"), HasSubstr("HF_ENDPOINT")));
  EXPECT_THAT(explain_answer(failure(HttpFailure::insecure, "expired"), list),
              AllOf(HasSubstr("TLS"), HasSubstr("expired"), HasSubstr("CURL_CA_BUNDLE")));
}

TEST(AnswerErrors, TheServersWordsAreQuotedAndBounded) {
  const std::string sentence = explain_answer(status(400, "", "bad\x1b[31m" + std::string(10000, 'x')), list);
  EXPECT_THAT(sentence, AllOf(HasSubstr("it says \"bad\\u001b[31m"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(sentence.size(), 300U);
}

}  // namespace
}  // namespace sinkscope
