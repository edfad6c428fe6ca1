#include "cli/deviation.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <cstdio>
#include <fstream>

#include "base/files.h"

namespace sinkscope {
namespace {

template <typename Lines>
void write_lines(const std::filesystem::path& path, const Lines& lines) {
  std::string text;
  for (const auto& [index, line] : lines) text += line.dump() + '\n';
  if (text != read_file(path)) write_file_atomically(path, text);
}

}  // namespace

DeviationLog::DeviationLog(const std::filesystem::path& folder, const std::set<std::int64_t>& finished)
    : path_(folder / "deviation.jsonl") {
  if (!std::filesystem::exists(path_)) return;
  std::ifstream file(path_);
  for (std::string text; std::getline(file, text);) {
    Line line = Line::parse(text, nullptr, /*allow_exceptions=*/false);
    // A torn line, which an interruption may leave, cannot be read; its sample is not finished.
    if (!line.is_object() || !line.value("index", Line()).is_number_integer()) continue;
    const auto index = line["index"].get<std::int64_t>();
    if (finished.contains(index)) lines_.insert_or_assign(index, std::move(line));
  }
  write_lines(path_, lines_);
}

void DeviationLog::add(std::int64_t index, std::size_t prompt_length, const SampleResult& fast,
                       const SampleResult& exact, const Seconds& seconds) {
  Line line{{"index", index},
            {"tokens", fast.ids.size() - prompt_length},
            {"equal", 0},
            {"first_difference", nullptr}};
  std::int64_t equal = 0;
  for (std::size_t i = prompt_length; i < fast.ids.size(); ++i) {
    if (fast.ids[i] == exact.ids[i])
      ++equal;
    else if (line["first_difference"].is_null())
      line["first_difference"] = i - prompt_length;
  }
  line["equal"] = equal;
  line["forward_passes"] = fast.forward_passes;
  line["exact_forward_passes"] = exact.forward_passes;
  line["seconds"] = seconds.fast;
  line["exact_seconds"] = seconds.exact;
  std::ofstream file(path_, std::ios::app);
  if (!(file << line.dump() << '\n') || !file.flush()) throw Error("{} cannot be written", path_.string());
  lines_.insert_or_assign(index, std::move(line));
}

void DeviationLog::finish() const {
  if (lines_.empty()) return;
  write_lines(path_, lines_);
  std::int64_t identical = 0;
  std::int64_t tokens = 0;
  std::int64_t equal = 0;
  std::int64_t passes = 0;
  std::int64_t exact_passes = 0;
  Seconds seconds;
  for (const auto& [index, line] : lines_) {
    identical += line.at("first_difference").is_null() ? 1 : 0;
    tokens += line.at("tokens").get<std::int64_t>();
    equal += line.at("equal").get<std::int64_t>();
    passes += line.at("forward_passes").get<std::int64_t>();
    exact_passes += line.at("exact_forward_passes").get<std::int64_t>();
    seconds.fast += line.at("seconds").get<double>();
    seconds.exact += line.at("exact_seconds").get<double>();
  }
  const std::string text = fmt::format(
      "deviation from the exact run: {} of {} tokens equal ({:.1f} %), {} of {} samples identical; {} "
      "forward passes "
      "instead of {}, {:.2f} s instead of {:.2f} s\n",
      equal, tokens, 100 * static_cast<double>(equal) / static_cast<double>(tokens), identical, lines_.size(),
      passes, exact_passes, seconds.fast, seconds.exact);
  std::fputs(text.c_str(), stdout);
}

}  // namespace sinkscope
