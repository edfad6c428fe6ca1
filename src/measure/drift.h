// Where the sinks lie and how the place moves (sinks.md 5.2).
#pragma once

#include <cstddef>
#include <vector>

#include "measure/step.h"

namespace sinkscope {

/// A mean over samples; those without the quantity are left out.
struct SampleMean {
  double sum = 0;
  double squares = 0;
  std::size_t samples = 0;

  void add(double value) {
    sum += value;
    squares += value * value;
    ++samples;
  }
};

struct DriftSums {
  SampleMean slope;              ///< positions a step, of the centroid of the sinks
  SampleMean spatial_variance;   ///< Var_j(mean_t m_t(j))
  SampleMean temporal_variance;  ///< Var_t(c_t), positions squared
};

void add(DriftSums& sums, const DriftSums& other);

/// Follows one sample.
class DriftTracker {
 public:
  explicit DriftTracker(const SampleShape& shape);

  void add_step(const Step& step);
  /// After the last step.
  void finish(DriftSums& sums) const;

 private:
  SampleShape shape_;
  std::vector<double> mass_;       // [S] sum over steps of m_t(j)
  std::vector<double> times_;      // steps with a sink
  std::vector<double> centroids_;  // c_t of these
};

}  // namespace sinkscope
