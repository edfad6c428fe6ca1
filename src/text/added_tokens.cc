#include "text/added_tokens.h"

#include <sinkscope/error.h>

#include <algorithm>

#include "text/regex.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

// Whether text is a single word character as Rust's `\w` has it: alphabetic, mark, decimal digit, connector
// or joiner.
bool is_word_character(std::string_view character) {
  static const Regex word(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])", "word characters");
  std::vector<MatchedSpan> found;
  word.find(character, 0, found);
  return !found.empty() && found.front().is_match;
}

std::string_view first_character(std::string_view text) { return text.substr(0, decode_utf8(text).length); }

// Where the white space that ends at `end` begins, not before `limit`.
std::size_t white_space_before(std::string_view text, std::size_t limit, std::size_t end) {
  while (end > limit) {
    const std::string_view character = last_character(text.substr(limit, end - limit));
    if (!is_white_space(decode_utf8(character).code_point)) break;
    end -= character.size();
  }
  return end;
}

std::size_t white_space_after(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const DecodedChar c = decode_utf8(text.substr(begin));
    if (!is_white_space(c.code_point)) break;
    begin += c.length;
  }
  return begin;
}

bool stands_alone(std::string_view text, Span match) {
  const bool left = match.begin == 0 || !is_word_character(last_character(text.substr(0, match.begin)));
  const bool right = match.end == text.size() || !is_word_character(first_character(text.substr(match.end)));
  return left && right;
}

}  // namespace

AddedToken read_added_token(const JsonPlace& place, std::int32_t id) {
  AddedToken token;
  token.id = id;
  token.content = place.at("content").as_string();
  token.special = place.bool_or("special", false);
  token.single_word = place.bool_or("single_word", false);
  token.lstrip = place.bool_or("lstrip", false);
  token.rstrip = place.bool_or("rstrip", false);
  token.normalized = place.bool_or("normalized", !token.special);
  if (token.content.empty()) throw Error("{}.content is empty; an added token needs a text", place.where);
  if (token.content.size() > longest_added_token)
    throw Error("{}.content is {} bytes long; added tokens of at most {} bytes are supported", place.where,
                token.content.size(), longest_added_token);
  return token;
}

std::vector<AddedToken> read_added_tokens(const JsonPlace& place) {
  std::vector<AddedToken> tokens;
  for (std::size_t i = 0; i < place.array_size(); ++i) {
    const JsonPlace element = place.element(i);
    const auto id = static_cast<std::int32_t>(element.at("id").as_integer(0, max_token_id));
    tokens.push_back(read_added_token(element, id));
  }
  return tokens;
}

void AddedTokenFinder::add(std::string_view pattern, const AddedToken* token) {
  if (pattern.empty()) return;
  std::int32_t& root = root_[static_cast<unsigned char>(pattern[0])];
  if (root < 0) root = new_node(static_cast<unsigned char>(pattern[0]));
  std::int32_t node = root;
  for (const char c : pattern.substr(1)) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t next = child(node, byte);
    if (next < 0) {
      next = new_node(byte);
      nodes_[static_cast<std::size_t>(next)].next_sibling =
          nodes_[static_cast<std::size_t>(node)].first_child;
      nodes_[static_cast<std::size_t>(node)].first_child = next;
    }
    node = next;
  }
  Node& last = nodes_[static_cast<std::size_t>(node)];
  if (last.token == nullptr) last.token = token;
}

std::int32_t AddedTokenFinder::new_node(unsigned char byte) {
  nodes_.push_back(Node{byte, -1, -1, nullptr});
  return static_cast<std::int32_t>(nodes_.size() - 1);
}

std::int32_t AddedTokenFinder::child(std::int32_t node, unsigned char byte) const {
  std::int32_t next = nodes_[static_cast<std::size_t>(node)].first_child;
  while (next >= 0 && nodes_[static_cast<std::size_t>(next)].byte != byte)
    next = nodes_[static_cast<std::size_t>(next)].next_sibling;
  return next;
}

AddedTokenFinder::Found AddedTokenFinder::longest_at(std::string_view text) const {
  Found found;
  std::int32_t node = root_[static_cast<unsigned char>(text[0])];
  for (std::size_t length = 1; node >= 0; ++length) {
    const Node& here = nodes_[static_cast<std::size_t>(node)];
    if (here.token != nullptr) found = {here.token, length};
    if (length >= text.size()) break;
    node = child(node, static_cast<unsigned char>(text[length]));
  }
  return found;
}

std::vector<TokenStretch> AddedTokenFinder::find(std::string_view text) const {
  std::vector<TokenStretch> stretches;
  std::size_t covered = 0;
  for (std::size_t at = 0; !is_empty();) {
    while (at < text.size() && root_[static_cast<unsigned char>(text[at])] < 0) ++at;
    if (at >= text.size()) break;
    const Found found = longest_at(text.substr(at));
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    Span match{at, at + found.length};
    at = match.end;  // the search goes on behind it even if it is discarded
    if (found.token->single_word && !stands_alone(text, match)) continue;
    if (found.token->lstrip)
      match.begin = white_space_before(text, std::min(covered, match.begin), match.begin);
    if (found.token->rstrip) match.end = white_space_after(text, match.end);
    if (covered < match.begin) stretches.push_back({nullptr, {covered, match.begin}});
    stretches.push_back({found.token, match});
    covered = match.end;
  }
  if (covered < text.size()) stretches.push_back({nullptr, {covered, text.size()}});
  return stretches;
}

}  // namespace sinkscope
