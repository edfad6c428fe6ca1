// The "post_processor" of a tokenizer.json: the special tokens put around an encoded text.
#pragma once

#include <cstdint>
#include <vector>

#include "text/json_fields.h"

namespace sinkscope {

/// Ids put before and after the text's own.
struct PostProcessor {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

/// Reads TemplateProcessing (its `single` template), ByteLevel (which adds nothing) and Sequences of them.
/// Throws Error naming any other component.
PostProcessor read_post_processor(const JsonPlace& place);

}  // namespace sinkscope
