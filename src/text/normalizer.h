// The "normalizer" of a tokenizer.json: what is done to the text before it is split.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/json_fields.h"
#include "text/pattern.h"

namespace sinkscope {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

struct Lowercase {};
struct Prepend {
  std::string text;
};
struct StripEnds {
  bool left = true;
  bool right = true;
};

using NormalizerStep = std::variant<UnicodeForm, Lowercase, Prepend, Replacement, StripEnds>;
using Normalizer = std::vector<NormalizerStep>;

/// Reads a normalizer; Sequences are flattened. Throws Error naming a component that is not supported.
Normalizer read_normalizer(const JsonPlace& place);

/// text must be valid UTF-8, and the result is.
std::string normalize(const Normalizer& normalizer, std::string text);

/// text in a Unicode normalization form (Unicode annex 15), in O(n log n) whatever the marks.
std::string normalize_unicode(UnicodeForm form, std::string text);

}  // namespace sinkscope
