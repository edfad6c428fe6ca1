// What an answer that is no file means, in a sentence with what would be right.
#pragma once

#include <string>

#include "checkpoint/hub_cache.h"
#include "hub/http.h"

namespace sinkscope {

/// What was asked for.
struct RequestSubject {
  HubId id;
  std::string file;  // "" for the repository's list of files
  std::string endpoint;
  bool has_token = false;

  /// "ORG/NAME@REVISION" or "FILE of ORG/NAME@REVISION"
  std::string text() const;
};

/// For an answer with another status than 200 and 206, or with a failure.
std::string explain_answer(const HttpAnswer& answer, const RequestSubject& subject);

}  // namespace sinkscope
