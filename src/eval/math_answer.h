// Mathematical answers as LaTeX writes them, compared by normalisation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sinkscope {

/// The content of the last \boxed{...} or \fbox{...} whose braces close; `\boxed 7` holds what follows the
/// space up to a `$`. None where there is none.
std::optional<std::string> last_boxed(std::string_view text);

/// One way of writing for answers that mean the same: without spaces, sizes (\left, \right), units, degrees,
/// percent and dollar signs, thousands commas, text around the value (`x =`, \text{...}), with \frac and
/// \sqrt written with braces, `a/b` of whole numbers as \frac{a}{b}, and numbers without needless zeros. No
/// algebra is done: 1/2 and 0.5 are one answer, sqrt(8) and 2 sqrt(2) are two.
std::string normalised_math(std::string_view answer);

bool is_math_equal(std::string_view answer, std::string_view target);

}  // namespace sinkscope
