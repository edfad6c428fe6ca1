#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/find_text.h"
#include "text/jinja/python_text.h"

namespace sinkscope::jinja {
namespace {

constexpr const char* symbols[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void refuse(Arithmetic operation, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right})
    if (const Undefined* undefined = get<Undefined>(*value)) throw_undefined(*undefined);
  throw TemplateError(fmt::format("{} and {} cannot be combined by {}", type_name(left), type_name(right),
                                  symbols[static_cast<std::size_t>(operation)]));
}

std::int64_t checked(bool overflows, std::int64_t result) {
  if (overflows) throw TemplateError("an integer grows beyond 64 bits");
  return result;
}

void refuse_zero(bool is_zero) {
  if (is_zero) throw TemplateError("division by zero");
}

std::int64_t floor_divide(std::int64_t left, std::int64_t right) {
  refuse_zero(right == 0);
  if (right == -1) return checked(left == INT64_MIN, left == INT64_MIN ? 0 : -left);
  const std::int64_t quotient = left / right;
  return quotient - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

std::int64_t modulo(std::int64_t left, std::int64_t right) {
  refuse_zero(right == 0);
  if (right == -1) return 0;
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    refuse_zero(base == 0);
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? std::int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? std::int64_t{1} : base;
  std::int64_t result = 1;  // with |base| > 1 the loop ends within 64 turns
  for (; exponent > 0; --exponent) {
    const bool overflows = __builtin_mul_overflow(result, base, &result);
    result = checked(overflows, result);
  }
  return result;
}

Value compute_integers(Arithmetic operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Arithmetic::add:
      overflows = __builtin_add_overflow(left, right, &result);
      return checked(overflows, result);
    case Arithmetic::subtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      return checked(overflows, result);
    case Arithmetic::multiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      return checked(overflows, result);
    case Arithmetic::divide:
      refuse_zero(right == 0);
      return static_cast<double>(left) / static_cast<double>(right);
    case Arithmetic::floor_divide:
      return floor_divide(left, right);
    case Arithmetic::modulo:
      return modulo(left, right);
    case Arithmetic::power:
      break;
  }
  return power(left, right);
}

Value compute_reals(Arithmetic operation, double left, double right) {
  switch (operation) {
    case Arithmetic::add:
      return left + right;
    case Arithmetic::subtract:
      return left - right;
    case Arithmetic::multiply:
      return left * right;
    case Arithmetic::divide:
      refuse_zero(right == 0);
      return left / right;
    case Arithmetic::floor_divide:
      refuse_zero(right == 0);
      return std::floor(left / right);
    case Arithmetic::modulo: {
      refuse_zero(right == 0);
      const double rest = std::fmod(left, right);
      return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
    }
    case Arithmetic::power:
      break;
  }
  const double result = std::pow(left, right);
  if (!std::isfinite(result)) throw TemplateError("a power that is no finite real number");
  return result;
}

Value repeat_text(Work& work, const std::string& text, std::int64_t times) {
  if (times <= 0 || text.empty()) return make_text(work, "");
  // Charged before it is made: the product may be beyond all memory.
  work.charge(text.size());
  if (static_cast<std::uint64_t>(times) > UINT64_MAX / text.size()) work.charge(UINT64_MAX);
  work.charge(static_cast<std::uint64_t>(times) * text.size());
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) out.append(text);
  return std::make_shared<const std::string>(std::move(out));
}

Value add_lists(Work& work, const List& left, const List& right) {
  work.charge((left.items.size() + right.items.size()) * element_cost);
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_list(work, std::move(items), left.kind);
}

Value repeat_list(Work& work, const List& list, std::int64_t times) {
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times && !list.items.empty(); ++i) {
    work.charge(list.items.size() * element_cost);
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_list(work, std::move(items), list.kind);
}

bool is_plain_list(const List* list) {
  return list != nullptr && (list->kind == ListKind::list || list->kind == ListKind::tuple);
}

// "%s and %d" % (a, 1): s and d without flags.
Value format_text(Work& work, const std::string& format, const Value& right) {
  const List* list = list_of(right);
  const bool is_tuple = list != nullptr && list->kind == ListKind::tuple;
  const std::vector<Value> values = is_tuple ? list->items : std::vector<Value>{right};
  work.charge(values.size() * element_cost);
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    const char conversion = ++i < format.size() ? format[i] : '\0';
    if (conversion == '%') {
      out.push_back('%');
      continue;
    }
    if (conversion != 's' && conversion != 'd')
      throw TemplateError("of the conversions of % on a string only %s, %d and %% are supported");
    if (next >= values.size()) throw TemplateError("% on a string has too few values");
    const Value& value = values[next++];
    if (conversion == 'd' && !integer_of(value))
      throw TemplateError(fmt::format("%d takes an integer, not {}", type_name(value)));
    out.append(conversion == 'd' ? std::to_string(*integer_of(value)) : to_text(work, value));
  }
  if (next < values.size() && !(values.size() == 1 && !is_tuple && dict_of(right) != nullptr))
    throw TemplateError("% on a string has too many values");
  return make_text(work, std::move(out));
}

bool contains(Work& work, const Value& needle, const Value& container) {
  if (const std::string* text = text_of(container)) {
    const std::string* part = text_of(needle);
    if (part == nullptr)
      throw TemplateError(fmt::format("`in` a string asks for a string, not {}", type_name(needle)));
    work.charge(text->size());
    return find_text(*text, *part) != std::string_view::npos;
  }
  if (const Dict* dict = dict_of(container)) {
    const std::string* key = text_of(needle);
    work.charge(dict->entries.size() * element_cost);
    return key != nullptr && find(*dict, *key) != nullptr;
  }
  const std::shared_ptr<const List> elements = elements_of(work, container);
  return std::any_of(elements->items.begin(), elements->items.end(),
                     [&](const Value& element) { return are_equal(work, element, needle); });
}

// < 0, 0, > 0.
int order(Work& work, const Value& left, const Value& right) {
  const auto three_way = [](const auto& a, const auto& b) { return a < b ? -1 : a > b ? 1 : 0; };
  const auto left_integer = integer_of(left), right_integer = integer_of(right);
  if (left_integer && right_integer) return three_way(*left_integer, *right_integer);
  const std::string* left_text = text_of(left);
  const std::string* right_text = text_of(right);
  if (left_text != nullptr && right_text != nullptr) {
    work.charge(std::min(left_text->size(), right_text->size()));
    return three_way(left_text->compare(*right_text), 0);  // UTF-8 sorts as code points do
  }
  for (const Value* value : {&left, &right})
    if (const Undefined* undefined = get<Undefined>(*value)) throw_undefined(*undefined);
  throw TemplateError(fmt::format("{} and {} cannot be ordered", type_name(left), type_name(right)));
}

bool compare_reals(Comparison comparison, double left, double right) {
  switch (comparison) {
    case Comparison::less:
      return left < right;
    case Comparison::less_equal:
      return left <= right;
    case Comparison::greater:
      return left > right;
    default:
      return left >= right;
  }
}

}  // namespace

Value compute(Work& work, Arithmetic operation, const Value& left, const Value& right) {
  work.charge(step_cost);
  const auto left_integer = integer_of(left), right_integer = integer_of(right);
  if (left_integer && right_integer) return compute_integers(operation, *left_integer, *right_integer);
  const auto left_number = number_of(left), right_number = number_of(right);
  if (left_number && right_number) return compute_reals(operation, *left_number, *right_number);
  const std::string* left_text = text_of(left);
  const std::string* right_text = text_of(right);
  if (operation == Arithmetic::add && left_text != nullptr && right_text != nullptr) {
    work.charge(left_text->size() + right_text->size());
    return make_text(work, *left_text + *right_text);
  }
  const List* left_list = list_of(left);
  const List* right_list = list_of(right);
  if (operation == Arithmetic::add && is_plain_list(left_list) && is_plain_list(right_list) &&
      left_list->kind == right_list->kind)
    return add_lists(work, *left_list, *right_list);
  if (operation == Arithmetic::multiply && is_plain_list(left_list) && right_integer)
    return repeat_list(work, *left_list, *right_integer);
  if (operation == Arithmetic::multiply && left_integer && is_plain_list(right_list))
    return repeat_list(work, *right_list, *left_integer);
  if (operation == Arithmetic::multiply && left_text != nullptr && right_integer)
    return repeat_text(work, *left_text, *right_integer);
  if (operation == Arithmetic::multiply && left_integer && right_text != nullptr)
    return repeat_text(work, *right_text, *left_integer);
  if (operation == Arithmetic::modulo && left_text != nullptr) return format_text(work, *left_text, right);
  refuse(operation, left, right);
}

Value negate(const Value& value) {
  if (const auto integer = integer_of(value)) return compute_integers(Arithmetic::subtract, 0, *integer);
  if (const double* real = get<double>(value)) return -*real;
  if (const Undefined* undefined = get<Undefined>(value)) throw_undefined(*undefined);
  throw TemplateError(fmt::format("{} has no negative", type_name(value)));
}

bool compare(Work& work, Comparison comparison, const Value& left, const Value& right) {
  work.charge(step_cost);
  switch (comparison) {
    case Comparison::equal:
      return are_equal(work, left, right);
    case Comparison::unequal:
      return !are_equal(work, left, right);
    case Comparison::in:
      return contains(work, left, right);
    case Comparison::not_in:
      return !contains(work, left, right);
    default:
      break;
  }
  const bool has_real = get<double>(left) != nullptr || get<double>(right) != nullptr;
  if (has_real && number_of(left) && number_of(right))
    return compare_reals(comparison, *number_of(left), *number_of(right));
  return compare_reals(comparison, order(work, left, right), 0);
}

}  // namespace sinkscope::jinja
