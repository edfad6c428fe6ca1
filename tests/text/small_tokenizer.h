// A tokenizer.json of a few tokens for tests to change.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace sinkscope {

/// Characters a b c and <unk>, the merges a b -> ab and ab c -> abc, the special token <s>.
inline Json small_tokenizer() {
  return Json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 6, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "unk_token": "<unk>",
              "vocab": {"<unk>": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "abc": 5},
              "merges": ["a b", "ab c"]}})");
}

inline Tokenizer parse(const Json& json) { return Tokenizer::parse(json.dump(), "DIR/tokenizer.json"); }

/// The message of the Error that loading this throws; empty if none.
inline std::string load_error(const Json& json) {
  try {
    parse(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// small_tokenizer() with the value at a JSON pointer replaced.
inline Json small_with(const std::string& pointer, const Json& value) {
  Json json = small_tokenizer();
  json[Json::json_pointer(pointer)] = value;
  return json;
}

using Ids = std::vector<std::int32_t>;

}  // namespace sinkscope
