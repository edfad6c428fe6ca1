#include "draw/text_fit.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "draw/process.h"

namespace sinkscope {
namespace {

// One character, or a byte that is none (character -1, one byte long).
struct Character {
  utf8proc_int32_t code = -1;
  std::size_t length = 1;
};

Character next_character(std::string_view text) {
  Character result;
  const utf8proc_ssize_t count =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &result.code);
  if (count > 0)
    result.length = static_cast<std::size_t>(count);
  else
    result.code = -1;
  return result;
}

std::size_t columns_of(const Character& character) {
  return character.code < 0 ? 4 : static_cast<std::size_t>(std::max(0, utf8proc_charwidth(character.code)));
}

std::string installed_character_sets() {
  // Pango 1.44 and later shows no others.
  const ProcessResult result = run_process({"fc-list", "--format", "%{fontformat}|%{charset}\n"});
  if (!result.succeeded) return "20-7e";
  std::string sets;
  for (std::size_t begin = 0; begin < result.output.size();) {
    const std::size_t end = std::min(result.output.find('\n', begin), result.output.size());
    const std::string_view line = std::string_view(result.output).substr(begin, end - begin);
    const std::size_t bar = line.find('|');
    if (bar != std::string_view::npos && (line.starts_with("TrueType") || line.starts_with("CFF")))
      sets.append(line.substr(bar + 1)).append(" ");
    begin = end + 1;
  }
  return sets;
}

}  // namespace

Glyphs::Glyphs(std::string_view character_sets) {
  const char* at = character_sets.data();
  const char* const end = at + character_sets.size();
  while (at < end) {
    std::pair<std::uint32_t, std::uint32_t> range;
    const auto first = std::from_chars(at, end, range.first, 16);
    if (first.ec != std::errc()) {
      ++at;
      continue;
    }
    range.second = range.first;
    at = first.ptr;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, range.second, 16).ptr;
    ranges_.push_back(range);
  }
  std::sort(ranges_.begin(), ranges_.end());
  // Ranges of several fonts become disjoint ones.
  std::size_t kept = 0;
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].first <= ranges_[kept].second + 1)
      ranges_[kept].second = std::max(ranges_[kept].second, ranges_[i].second);
    else
      ranges_[++kept] = ranges_[i];
  }
  if (!ranges_.empty()) ranges_.resize(kept + 1);
}

const Glyphs& Glyphs::installed() {
  static const Glyphs glyphs(installed_character_sets());
  return glyphs;
}

bool Glyphs::has(std::uint32_t character) const {
  const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), character,
                                      [](std::uint32_t c, const auto& range) { return c < range.first; });
  return above != ranges_.begin() && character <= std::prev(above)->second;
}

std::string Glyphs::shown(std::string_view text, bool& missing) const {
  std::string result;
  bool in_run = false;
  while (!text.empty()) {
    const Character character = next_character(text);
    const bool drawn = character.code >= 0x20 && has(static_cast<std::uint32_t>(character.code));
    if (in_run && drawn) result += '>';
    if (!drawn) {
      missing = true;
      result += in_run ? " " : "<";
      result += character.code < 0 ? fmt::format("{:02X}", static_cast<unsigned char>(text[0]))
                                   : fmt::format("U+{:04X}", character.code);
    } else {
      result.append(text.substr(0, character.length));
    }
    in_run = !drawn;
    text.remove_prefix(character.length);
  }
  if (in_run) result += '>';
  return result;
}

std::size_t text_columns(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = next_character(text);
    columns += columns_of(character);
    text.remove_prefix(character.length);
  }
  return columns;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text_columns(text) <= most) return std::string(text);
  std::size_t columns = 0, bytes = 0;
  while (bytes < text.size()) {
    const Character character = next_character(text.substr(bytes));
    columns += columns_of(character);
    if (columns + 1 > most) break;
    bytes += character.length;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string word = shortened(text.substr(0, space), most);
    if (!line.empty() && text_columns(line) + 1 + text_columns(word) > most) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::vector<Label> thinned(std::vector<Label> labels, double gap) {
  std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
    return a.strength != b.strength ? a.strength > b.strength : a.at < b.at;
  });
  std::vector<Label> kept;
  std::set<double> places;
  for (Label& label : labels) {
    const auto next = places.lower_bound(label.at);
    if (next != places.end() && *next - label.at < gap) continue;
    if (next != places.begin() && label.at - *std::prev(next) < gap) continue;
    places.insert(label.at);
    kept.push_back(std::move(label));
  }
  std::sort(kept.begin(), kept.end(), [](const Label& a, const Label& b) { return a.at < b.at; });
  return kept;
}

}  // namespace sinkscope
