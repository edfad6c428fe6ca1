// Puzzles whose answers are checked by their rules: there may be several right ones.
#pragma once

#include <string_view>

namespace sinkscope {

/// Countdown: `problem` is "15,44,79,50", the numbers and at last the target; `answer` "44-15=29,79-29=50".
/// Right where every equation holds, calculates with two numbers that are there (given, or results of
/// equations before it; each used once), every given number is used, and the last result is the target.
/// Divisions must leave no remainder. White space does not matter. Throws Error where the problem is not of
/// that form.
bool solves_countdown(std::string_view problem, std::string_view answer);

/// 4 x 4 sudoku: `problem` is four rows of four digits, 0 for an empty cell; the first 16 digits of `answer`
/// are the solution. Right where every row, column and 2 x 2 box holds 1 to 4 and the given cells are kept.
/// Throws Error where the problem is not of that form.
bool solves_sudoku(std::string_view problem, std::string_view answer);

}  // namespace sinkscope
