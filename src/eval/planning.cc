#include "eval/planning.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text_parts.h"

namespace sinkscope {
namespace {

constexpr std::size_t side = 4;
constexpr std::size_t cells = side * side;
constexpr std::int64_t largest_number = 1'000'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string without_space(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c != ' ' && c != '\n' && c != '\t' && c != '\r'; });
  return out;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool right =
      error == std::errc() && end == text.data() + text.size() && std::abs(value) <= largest_number;
  return right ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> calculate(std::int64_t a, char operation, std::int64_t b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return b != 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
  }
}

struct Equation {
  std::int64_t a = 0;
  char operation = '+';
  std::int64_t b = 0;
  std::int64_t result = 0;
};

std::optional<Equation> read_equation(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t operation = text.find_first_of("+-*/", 1);  // a minus in front belongs to the number
  if (equals == std::string_view::npos || operation == std::string_view::npos || operation > equals)
    return std::nullopt;
  const auto a = number_of(text.substr(0, operation));
  const auto b = number_of(text.substr(operation + 1, equals - operation - 1));
  const auto result = number_of(text.substr(equals + 1));
  if (!a || !b || !result) return std::nullopt;
  return Equation{*a, text[operation], *b, *result};
}

bool take(std::vector<std::int64_t>& numbers, std::int64_t wanted) {
  const auto found = std::find(numbers.begin(), numbers.end(), wanted);
  if (found == numbers.end()) return false;
  numbers.erase(found);
  return true;
}

std::string digits_of(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), is_digit);
  return digits;
}

// Whether the cells that `place` numbers hold each digit once.
template <typename Place>
bool holds_each(std::string_view grid, const Place& place) {
  unsigned seen = 0;
  for (std::size_t i = 0; i < side; ++i) seen |= 1U << static_cast<unsigned>(grid[place(i)] - '0');
  return seen == 0b11110U;
}

}  // namespace

bool solves_countdown(std::string_view problem, std::string_view answer) {
  std::vector<std::int64_t> numbers;
  const std::string given = without_space(problem);
  for (const std::string_view part : comma_parts(given)) {
    const auto number = number_of(part);
    if (!number)
      throw Error("\"{}\" is no countdown problem; numbers with commas between them would be right", problem);
    numbers.push_back(*number);
  }
  if (numbers.size() < 2)
    throw Error("\"{}\" is no countdown problem; it needs numbers and a target", problem);
  const std::int64_t target = numbers.back();
  numbers.pop_back();
  const std::string written = without_space(answer);
  for (const std::string_view part : comma_parts(written)) {
    const auto equation = read_equation(part);
    if (!equation || !take(numbers, equation->a) || !take(numbers, equation->b)) return false;
    if (calculate(equation->a, equation->operation, equation->b) != equation->result) return false;
    numbers.push_back(equation->result);
  }
  return numbers.size() == 1 && numbers.front() == target;
}

bool solves_sudoku(std::string_view problem, std::string_view answer) {
  const std::string given = digits_of(problem);
  if (given.size() != cells || given.find_first_not_of("01234") != std::string::npos)
    throw Error("\"{}\" is no 4 x 4 sudoku; 16 digits from 0 to 4 would be right", problem);
  const std::string grid = digits_of(answer).substr(0, cells);
  if (grid.size() != cells || grid.find_first_not_of("1234") != std::string::npos) return false;
  for (std::size_t i = 0; i < cells; ++i)
    if (given[i] != '0' && given[i] != grid[i]) return false;
  for (std::size_t n = 0; n < side; ++n) {
    const std::size_t corner = n / 2 * 2 * side + n % 2 * 2;
    const bool right = holds_each(grid, [&](std::size_t i) { return n * side + i; }) &&
                       holds_each(grid, [&](std::size_t i) { return i * side + n; }) &&
                       holds_each(grid, [&](std::size_t i) { return corner + i / 2 * side + i % 2; });
    if (!right) return false;
  }
  return true;
}

}  // namespace sinkscope
