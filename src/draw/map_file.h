// The whole attention maps of one layer and head that a sample recorded.
#pragma once

#include <sinkscope/npz.h>

#include <string>
#include <vector>

#include "draw/recorded.h"

namespace sinkscope {

class MapFile {
 public:
  /// Of the run's sample, the first of the chosen layers and heads that has maps. Throws Error naming the
  /// file and the array that is missing or has another type or shape.
  explicit MapFile(const PlotRun& run);

  std::size_t layer() const { return layer_; }
  std::size_t head() const { return head_; }
  std::size_t steps() const { return states_.steps; }
  std::size_t positions() const { return states_.positions; }
  std::int32_t id(std::size_t t, std::size_t j) const { return states_.ids[t * states_.positions + j]; }

  /// [S queries, S keys] of step t. Throws Error naming the place of a value that is no probability.
  Matrix map(std::size_t t) const;

 private:
  std::string where_;
  NpzFile file_;
  std::size_t layer_ = 0, head_ = 0;
  RecordedStates states_;
};

std::vector<float> column_sums(const Matrix& matrix);

}  // namespace sinkscope
