// How far results with a threshold or a cache are from those without.
#pragma once

#include <sinkscope/denoising.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sinkscope {

/// Of one sample.
struct Seconds {
  double fast = 0;
  double exact = 0;
};

/// Appends a line of deviation.jsonl in the run's folder for each sample: `index`, `tokens`, `equal`,
/// `first_difference` (null: none), `forward_passes`, `exact_forward_passes`, `seconds`, `exact_seconds`.
class DeviationLog {
 public:
  explicit DeviationLog(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void add(std::int64_t index, std::size_t prompt_length, const SampleResult& fast, const SampleResult& exact,
           const Seconds& seconds);
  /// The samples together, to stdout; nothing where none was added.
  void print() const;

 private:
  std::filesystem::path folder_;
  std::int64_t samples_ = 0, identical_ = 0, tokens_ = 0, equal_ = 0, passes_ = 0, exact_passes_ = 0;
  Seconds seconds_;
};

}  // namespace sinkscope
