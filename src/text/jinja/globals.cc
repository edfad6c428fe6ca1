#include "text/jinja/globals.h"

#include <fmt/format.h>

#include <array>

namespace sinkscope::jinja {
namespace {

// range([begin,] end[, step])
Value make_range(Work& work, const Arguments& arguments) {
  const auto given = bind(arguments, "range", {"start", "stop", "step"});
  std::int64_t begin = integer_or(required(given[0], "range"), "range", 0);
  std::int64_t end = integer_or(given[1], "range", begin);
  if (!given[1]) begin = 0;
  const std::int64_t step = integer_or(given[2], "range", 1);
  if (step == 0) throw TemplateError("range has a step of 0");
  std::vector<Value> items;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    work.charge(element_cost);
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return make_list(work, std::move(items), ListKind::range);
}

Value make_dict_of_names(Work& work, const Arguments& arguments) {
  if (!arguments.positional.empty())
    throw TemplateError("dict() with arguments that have no names is not supported");
  return make_dict(work, arguments.named);
}

std::string two_digits(unsigned number) { return fmt::format("{:02}", number); }

// One conversion of strftime, at midnight.
std::string format_date(char conversion, std::chrono::year_month_day day) {
  constexpr std::array months{"January", "February", "March",     "April",   "May",      "June",
                              "July",    "August",   "September", "October", "November", "December"};
  constexpr std::array weekdays{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  const unsigned month = static_cast<unsigned>(day.month());
  const std::string month_name = months[(month - 1) % 12];
  const std::string weekday = weekdays[std::chrono::weekday(std::chrono::sys_days(day)).c_encoding() % 7];
  const int year = static_cast<int>(day.year());
  switch (conversion) {
    case 'd':
      return two_digits(static_cast<unsigned>(day.day()));
    case 'm':
      return two_digits(month);
    case 'Y':
      return std::to_string(year);
    case 'y':
      return two_digits(static_cast<unsigned>(year % 100));
    case 'B':
      return month_name;
    case 'b':
      return month_name.substr(0, 3);
    case 'A':
      return weekday;
    case 'a':
      return weekday.substr(0, 3);
    case 'F':
      return fmt::format("{}-{}-{}", year, two_digits(month), two_digits(static_cast<unsigned>(day.day())));
    case 'H':
    case 'M':
    case 'S':
      return "00";
    case '%':
      return "%";
    default:
      throw TemplateError(
          fmt::format("strftime_now knows %d %m %Y %y %B %b %A %a %F %H %M %S and %%, not %{}",
                      conversion >= ' ' && conversion <= '~' ? conversion : '?'));
  }
}

Value tell_date(Work& work, const Arguments& arguments, std::chrono::year_month_day today) {
  const std::string format =
      text_or(required(bind(arguments, "strftime_now", {"format"})[0], "strftime_now"), "strftime_now", "");
  work.charge(format.size() * 16);
  if (!today.ok()) throw TemplateError("strftime_now is called and the day is not known");
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i)
    if (format[i] == '%')
      out.append(format_date(++i < format.size() ? format[i] : '\0', today));
    else
      out.push_back(format[i]);
  return make_text(work, std::move(out));
}

}  // namespace

std::optional<Global> find_global(std::string_view name) {
  if (name == "namespace") return Global::make_namespace;
  if (name == "range") return Global::range;
  if (name == "raise_exception") return Global::raise_exception;
  if (name == "strftime_now") return Global::strftime_now;
  if (name == "dict") return Global::make_dict;
  for (const std::string_view other :
       {"lipsum", "cycler", "joiner", "self", "super", "caller", "varargs", "kwargs"})
    if (name == other) throw TemplateError(fmt::format("Jinja's \"{}\" is not supported", name));
  return std::nullopt;
}

Value call_global(Work& work, Global function, const Arguments& arguments,
                  std::chrono::year_month_day today) {
  switch (function) {
    case Global::range:
      return make_range(work, arguments);
    case Global::make_dict:
      return make_dict_of_names(work, arguments);
    case Global::strftime_now:
      return tell_date(work, arguments, today);
    case Global::raise_exception:
      throw TemplateRefusal(
          to_text(work, required(bind(arguments, "raise_exception", {"message"})[0], "raise_exception")));
    case Global::make_namespace:
      break;
  }
  throw TemplateError("namespace() is called where it cannot be");
}

}  // namespace sinkscope::jinja
