// The generated tokens of a recorded autoregressive sample as steps: what one row of attention tells in the
// place of column sums. The file may come from anywhere.
#pragma once

#include <sinkscope/npz.h>

#include <filesystem>
#include <string>
#include <vector>

#include "measure/recorded_run.h"
#include "measure/sample_steps.h"

namespace sinkscope {

/// Whether a sample's file holds rows of an autoregressive model. Throws Error where it cannot be read.
bool holds_rows(const std::filesystem::path& file);

class RowSteps {
 public:
  /// Throws Error naming the file and the array that is missing, has another type or another shape than the
  /// run says.
  RowSteps(const std::filesystem::path& file, const RunShape& run);

  /// steps: generated tokens; positions: keys of the last of them, prompt_length + T - 1.
  const SampleShape& shape() const { return shape_; }

  /// Token t as a step over its own n_t = prompt_length + t keys (step.shape.positions): C of a key is n_t
  /// times the attention of the last query to it, 1 where attention is uniform, as interventions rank it. It
  /// stands in the class of that query. Throws Error naming the place of a value that is negative or not
  /// finite.
  void read(std::size_t t, Step& step) const;

 private:
  std::string where_;
  NpzFile file_;
  SampleShape shape_;
  RecordedStates states_;
};

}  // namespace sinkscope
