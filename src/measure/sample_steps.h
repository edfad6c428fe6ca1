// The forwards of one recorded sample, read one by one through a memory map. The file may come from anywhere.
#pragma once

#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "measure/effect.h"
#include "measure/step.h"

namespace sinkscope {

/// What of a run its samples are read by.
struct RunShape {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::optional<std::int32_t> mask_id;
  /// `--cache`: forwards may hold a part of the queries, whose number then follows from the sums.
  bool cached = false;
};

RunShape shape_of(const RunInfo& info);

class SampleSteps {
 public:
  /// Throws Error naming the file and the array that is missing, has another type or another shape than the
  /// run says.
  SampleSteps(const std::filesystem::path& file, const RunShape& run);

  const SampleShape& shape() const { return shape_; }

  /// Everything of forward t but its sinks. Buffers of `step` are used again. Throws Error naming the place
  /// of a column sum that is negative or not finite.
  void read(std::size_t t, Step& step) const;

  /// Whether `run --effect` wrote what the intervention did to each prediction.
  bool has_effect() const { return has_effect_; }
  /// Of forward t; throws as read_effect().
  std::vector<RecordedEffect> effect(std::size_t t) const { return read_effect(file_, where_, t); }

 private:
  void check_sums(const Step& step) const;
  void count_queries(Step& step) const;

  std::string where_;
  NpzFile file_;
  RunShape run_;
  SampleShape shape_;
  std::size_t prompt_length_ = 0;
  std::vector<std::int32_t> states_;  // [T+1,S]
  bool has_effect_ = false;
};

}  // namespace sinkscope
