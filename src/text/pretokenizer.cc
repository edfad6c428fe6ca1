#include "text/pretokenizer.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace sinkscope {

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

// Words, and what is neither word nor space, as the Whitespace pre-tokenizer's engine (Rust's) defines a
// word: the joiners belong to it.
const char* const whitespace_pattern =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+|[^\s\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+)";

SplitBehavior read_behavior(const JsonPlace& place) {
  const std::string& name = place.as_string();
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  throw Error(
      "{} is \"{}\"; Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous would be right",
      place.where, replace_invalid_utf8(name.substr(0, 100)));
}

ByteLevel read_byte_level(const JsonPlace& place) {
  ByteLevel step{place.bool_or("add_prefix_space", true), {}};
  if (place.bool_or("use_regex", true)) step.pattern.emplace_back(gpt2_pattern, place.where);
  return step;
}

// Older files have add_prefix_space, newer ones prepend_scheme and split; some have all three.
Metaspace read_metaspace(const JsonPlace& place) {
  Metaspace step;
  append_utf8(step.replacement, place.at("replacement").as_character());
  step.prepend_scheme = read_prepend_scheme(place);
  step.split = place.bool_or("split", true);
  return step;
}

Split read_split(const JsonPlace& place) {
  return Split{read_pattern(place.at("pattern")), read_behavior(place.at("behavior")),
               place.bool_or("invert", false)};
}

bool is_in_class(std::uint32_t c, CharacterClass character_class) {
  switch (character_class) {
    case CharacterClass::numeric:
      return is_numeric(c);
    case CharacterClass::punctuation:
      return is_punctuation(c);
    case CharacterClass::white_space:
      return is_white_space(c);
  }
  return false;
}

// Every character of the class is a match of its own.
void find_class(CharacterClass character_class, std::string_view text, std::size_t offset,
                std::vector<MatchedSpan>& out) {
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text.substr(at));
    if (is_in_class(c.code_point, character_class)) {
      if (covered < at) out.push_back({{offset + covered, offset + at}, false});
      out.push_back({{offset + at, offset + at + c.length}, true});
      covered = at + c.length;
    }
    at += c.length;
  }
  if (covered < text.size()) out.push_back({{offset + covered, offset + text.size()}, false});
}

// Cuts every piece; find(text, offset, out) lists a piece's stretches.
template <typename Find>
void split_pieces(Pieces& pieces, SplitBehavior behavior, bool invert, const Find& find) {
  std::vector<Span> spans;
  spans.reserve(pieces.spans.size());
  std::vector<MatchedSpan> stretches;
  for (const Span piece : pieces.spans) {
    stretches.clear();
    find(piece.of(pieces.text), piece.begin, stretches);
    if (invert)
      for (MatchedSpan& stretch : stretches) stretch.is_match = !stretch.is_match;
    apply_split(behavior, stretches, spans);
  }
  pieces.spans = std::move(spans);
}

// Writes every piece anew with rewrite(piece, out).
template <typename Rewrite>
void rewrite_pieces(Pieces& pieces, const Rewrite& rewrite) {
  Pieces result;
  result.text.reserve(pieces.text.size() + pieces.text.size() / 4);
  result.spans.reserve(pieces.spans.size());
  for (const Span piece : pieces.spans) {
    const std::size_t begin = result.text.size();
    rewrite(piece, result.text);
    if (result.text.size() > begin) result.spans.push_back({begin, result.text.size()});
  }
  pieces = std::move(result);
}

struct ApplyStep {
  Pieces& pieces;
  bool at_text_start;

  void operator()(const Split& step) const {
    split_pieces(pieces, step.behavior, step.invert,
                 [&](auto text, auto offset, auto& out) { find_pattern(step.pattern, text, offset, out); });
  }

  void operator()(const SplitByClass& step) const {
    split_pieces(pieces, step.behavior, false, [&](auto text, auto offset, auto& out) {
      find_class(step.character_class, text, offset, out);
    });
  }

  void operator()(const ByteLevel& step) const {
    if (step.add_prefix_space)
      rewrite_pieces(pieces, [&](Span piece, std::string& out) {
        if (pieces.text[piece.begin] != ' ') out.push_back(' ');
        out.append(piece.of(pieces.text));
      });
    for (const Regex& pattern : step.pattern)
      split_pieces(pieces, SplitBehavior::isolated, false,
                   [&](auto text, auto offset, auto& out) { pattern.find(text, offset, out); });
    rewrite_pieces(pieces,
                   [&](Span piece, std::string& out) { append_byte_alphabet(out, piece.of(pieces.text)); });
  }

  void operator()(const Metaspace& step) const {
    rewrite_pieces(pieces, [&](Span piece, std::string& out) {
      const std::string replaced =
          replace_pattern(Pattern(std::string(" ")), piece.of(pieces.text), step.replacement);
      const bool prepend = step.prepend_scheme == PrependScheme::always ||
                           (step.prepend_scheme == PrependScheme::first && at_text_start && piece.begin == 0);
      if (prepend && replaced.compare(0, step.replacement.size(), step.replacement) != 0)
        out.append(step.replacement);
      out.append(replaced);
    });
    if (step.split)
      split_pieces(pieces, SplitBehavior::merged_with_next, false, [&](auto text, auto offset, auto& out) {
        find_pattern(Pattern(step.replacement), text, offset, out);
      });
  }
};

void read_steps(const JsonPlace& place, Pretokenizer& steps, int depth) {
  const std::string& type = component_type(place);
  if (type == "Sequence") {
    if (depth >= max_sequence_depth) throw Error("{}: Sequences nest more than {} deep", place.where, depth);
    const JsonPlace members = place.at("pretokenizers");
    for (std::size_t i = 0; i < members.array_size(); ++i) read_steps(members.element(i), steps, depth + 1);
  } else if (type == "Split") {
    steps.emplace_back(read_split(place));
  } else if (type == "ByteLevel") {
    steps.emplace_back(read_byte_level(place));
  } else if (type == "Metaspace") {
    steps.emplace_back(read_metaspace(place));
  } else if (type == "Digits") {
    steps.emplace_back(SplitByClass{CharacterClass::numeric, place.bool_or("individual_digits", false)
                                                                 ? SplitBehavior::isolated
                                                                 : SplitBehavior::contiguous});
  } else if (type == "Punctuation") {
    const auto behavior = place.find("behavior");
    steps.emplace_back(SplitByClass{CharacterClass::punctuation,
                                    behavior ? read_behavior(*behavior) : SplitBehavior::isolated});
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(SplitByClass{CharacterClass::white_space, SplitBehavior::removed});
  } else if (type == "Whitespace") {
    steps.emplace_back(Split{Regex(whitespace_pattern, place.where), SplitBehavior::removed, true});
  } else {
    refuse_component(place, "pre-tokenizer");
  }
}

}  // namespace

PrependScheme read_prepend_scheme(const JsonPlace& place) {
  const std::string name = place.string_or("prepend_scheme", "always");
  const bool add_prefix_space = place.bool_or("add_prefix_space", true);
  if (name != "first" && name != "never" && name != "always")
    throw Error("{}.prepend_scheme is \"{}\"; first, never or always would be right", place.where,
                replace_invalid_utf8(name.substr(0, 100)));
  if (!add_prefix_space && name == "first")
    throw Error("{}: add_prefix_space false contradicts prepend_scheme \"first\"", place.where);
  if (!add_prefix_space || name == "never") return PrependScheme::never;
  return name == "first" ? PrependScheme::first : PrependScheme::always;
}

Pretokenizer read_pretokenizer(const JsonPlace& place) {
  Pretokenizer steps;
  read_steps(place, steps, 0);
  return steps;
}

Pieces pretokenize(const Pretokenizer& pretokenizer, std::string text, bool at_text_start) {
  Pieces pieces;
  pieces.text = std::move(text);
  if (!pieces.text.empty()) pieces.spans.push_back({0, pieces.text.size()});
  for (const PretokenizerStep& step : pretokenizer) std::visit(ApplyStep{pieces, at_text_start}, step);
  return pieces;
}

void apply_split(SplitBehavior behavior, const std::vector<MatchedSpan>& stretches, std::vector<Span>& out) {
  const std::size_t first = out.size();
  const auto keep = [&](Span span) { out.push_back(span); };
  bool previous = false;
  switch (behavior) {
    case SplitBehavior::isolated:
      for (const auto& stretch : stretches) keep(stretch.span);
      break;
    case SplitBehavior::removed:
      for (const auto& stretch : stretches)
        if (!stretch.is_match) keep(stretch.span);
      break;
    case SplitBehavior::contiguous:
    case SplitBehavior::merged_with_previous:
      for (const auto& [span, is_match] : stretches) {
        const bool join =
            behavior == SplitBehavior::contiguous ? is_match == previous : is_match && !previous;
        if (join && out.size() > first)
          out.back().end = span.end;
        else
          keep(span);
        previous = is_match;
      }
      break;
    case SplitBehavior::merged_with_next:
      // The mirror image of merged_with_previous: read from the right.
      for (auto stretch = stretches.rbegin(); stretch != stretches.rend(); ++stretch) {
        if (stretch->is_match && !previous && out.size() > first)
          out.back().begin = stretch->span.begin;
        else
          keep(stretch->span);
        previous = stretch->is_match;
      }
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
      break;
  }
  // Empty matches leave empty pieces.
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                           [](Span span) { return span.size() == 0; }),
            out.end());
}

}  // namespace sinkscope
