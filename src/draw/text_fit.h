// Text in pictures: what the fonts can show, how wide it is, which labels fit beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinkscope {

/// The characters that the installed fonts have, asked once from fontconfig, which gnuplot's Pango asks, too.
/// Pango draws a character without a glyph as a box with its number, and cairo then spoils the picture: here
/// such a character becomes that number as text.
class Glyphs {
 public:
  /// Asks `fc-list`. Without that program only the characters of ASCII count as there.
  static const Glyphs& installed();

  /// From lists like "20-7e a0-17f", as fontconfig writes them; for tests.
  explicit Glyphs(std::string_view character_sets);

  bool has(std::uint32_t character) const;

  /// The text with runs of characters without a glyph as `<U+0BA4 U+0BAE>`; `missing` becomes true where
  /// there are any. Bytes that are no UTF-8 become `<F0>`.
  std::string shown(std::string_view text, bool& missing) const;

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_;  // first and last, ascending
};

/// Columns of a text: characters, wide ones (of East Asia) as two, combining ones as none. A column of
/// 8-point text is at most about 0.62 * 8 points wide.
std::size_t text_columns(std::string_view text);

/// At most `most` columns, "…" for what is left out.
std::string shortened(std::string_view text, std::size_t most);

/// Lines of at most `most` columns, broken at spaces where there are any.
std::vector<std::string> wrapped(std::string_view text, std::size_t most);

/// A label wanted at a place of an axis; the stronger one stays where two do not fit.
struct Label {
  double at = 0;
  std::string text;
  double strength = 0;
};

/// Labels no closer than `gap`, the strongest first (ties: the lower place), in the order of their places.
std::vector<Label> thinned(std::vector<Label> labels, double gap);

}  // namespace sinkscope
