#include "cli/deviation.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sinkscope {

void DeviationLog::add(std::int64_t index, std::size_t prompt_length, const SampleResult& fast,
                       const SampleResult& exact, const Seconds& seconds) {
  nlohmann::ordered_json line{{"index", index},
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
  const std::filesystem::path path = folder_ / "deviation.jsonl";
  std::ofstream file(path, std::ios::app);
  if (!(file << line.dump() << '\n') || !file.flush()) throw Error("{} cannot be written", path.string());
  ++samples_;
  tokens_ += static_cast<std::int64_t>(fast.ids.size() - prompt_length);
  equal_ += equal;
  identical_ += line["first_difference"].is_null() ? 1 : 0;
  passes_ += fast.forward_passes;
  exact_passes_ += exact.forward_passes;
  seconds_.fast += seconds.fast;
  seconds_.exact += seconds.exact;
}

void DeviationLog::print() const {
  if (samples_ == 0) return;
  const std::string text = fmt::format(
      "deviation from the exact run: {} of {} tokens equal ({:.1f} %), {} of {} samples identical; {} "
      "forward passes "
      "instead of {}, {:.2f} s instead of {:.2f} s\n",
      equal_, tokens_, 100 * static_cast<double>(equal_) / static_cast<double>(tokens_), identical_, samples_,
      passes_, exact_passes_, seconds_.fast, seconds_.exact);
  std::fputs(text.c_str(), stdout);
}

}  // namespace sinkscope
