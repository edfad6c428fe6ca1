// How far results with a threshold or a cache are from those without.
#pragma once

#include <sinkscope/denoising.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace sinkscope {

/// Of one sample.
struct Seconds {
  double fast = 0;
  double exact = 0;
};

/// deviation.jsonl in the run's folder, a line a sample: `index`, `tokens`, `equal`, `first_difference`
/// (null: none), `forward_passes`, `exact_forward_passes`, `seconds`, `exact_seconds`.
class DeviationLog {
 public:
  /// Takes over the lines of finished samples that an interrupted run left; others go from the file.
  DeviationLog(const std::filesystem::path& folder, const std::set<std::int64_t>& finished);
  /// Appends a sample's line. Before the sample counts as finished, or an interruption would lose it.
  void add(std::int64_t index, std::size_t prompt_length, const SampleResult& fast, const SampleResult& exact,
           const Seconds& seconds);
  /// Puts the lines into the order of `index` and prints the samples together; nothing where there are none.
  void finish() const;

 private:
  using Line = nlohmann::ordered_json;

  std::filesystem::path path_;
  std::map<std::int64_t, Line> lines_;
};

}  // namespace sinkscope
