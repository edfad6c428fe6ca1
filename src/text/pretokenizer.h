// The "pre_tokenizer" of a tokenizer.json: how the normalized text is cut into the pieces that the model
// sees.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "text/json_fields.h"
#include "text/pattern.h"
#include "text/span.h"

namespace sinkscope {

/// What becomes of the stretches that a Split's pattern matched.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct Split {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
};

/// Maps bytes to GPT-2's alphabet, after splitting by GPT-2's pattern if there is one.
struct ByteLevel {
  bool add_prefix_space = true;
  std::vector<Regex> pattern;  // none or one
};

enum class PrependScheme { first, never, always };

struct Metaspace {
  std::string replacement;
  PrependScheme prepend_scheme = PrependScheme::always;
  bool split = true;
};

enum class CharacterClass { numeric, punctuation, white_space };

/// Cuts at characters of a class.
struct SplitByClass {
  CharacterClass character_class = CharacterClass::numeric;
  SplitBehavior behavior = SplitBehavior::isolated;
};

using PretokenizerStep = std::variant<Split, ByteLevel, Metaspace, SplitByClass>;
using Pretokenizer = std::vector<PretokenizerStep>;

/// A text and its pieces, in order and none empty. What lies between pieces has been removed.
struct Pieces {
  std::string text;
  std::vector<Span> spans;
};

/// Reads a pre-tokenizer; Sequences are flattened. Throws Error naming a component that is not supported.
Pretokenizer read_pretokenizer(const JsonPlace& place);

/// prepend_scheme of a Metaspace component, or what its older add_prefix_space means.
PrependScheme read_prepend_scheme(const JsonPlace& place);

/// Cuts normalized text into pieces. at_text_start: the text is the start of what the user gave, no added
/// token before it (Metaspace's prepend_scheme "first" asks for that).
Pieces pretokenize(const Pretokenizer& pretokenizer, std::string text, bool at_text_start);

/// Appends to out what a Split keeps of matched and unmatched stretches.
void apply_split(SplitBehavior behavior, const std::vector<MatchedSpan>& stretches, std::vector<Span>& out);

/// GPT-2's pattern, which ByteLevel brings along.
extern const char* const gpt2_pattern;
/// The pattern of Qwen2, Qwen2.5, Qwen3 and Dream.
extern const char* const qwen2_pattern;

}  // namespace sinkscope
