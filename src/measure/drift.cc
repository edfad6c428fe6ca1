#include "measure/drift.h"

#include <numeric>

namespace sinkscope {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// sum (x - mean x) (y - mean y); of twice the same it is n times the population variance.
double co_moment(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum;
}

double variance_of(std::span<const double> values) {
  return co_moment(values, values) / static_cast<double>(values.size());
}

void add_mean(SampleMean& mean, const SampleMean& other) {
  mean.sum += other.sum;
  mean.squares += other.squares;
  mean.samples += other.samples;
}

}  // namespace

void add(DriftSums& sums, const DriftSums& other) {
  add_mean(sums.slope, other.slope);
  add_mean(sums.spatial_variance, other.spatial_variance);
  add_mean(sums.temporal_variance, other.temporal_variance);
}

DriftTracker::DriftTracker(const SampleShape& shape) : shape_(shape), mass_(shape.positions, 0) {}

void DriftTracker::add_step(const Step& step) {
  double weight = 0, moment = 0;
  for (std::size_t map = 0; map < shape_.maps(); ++map) {
    const std::span<const float> columns = step.columns_of(map);
    for (std::size_t j = 0; j < columns.size(); ++j) mass_[j] += columns[j];
    for (const int key : step.sinks[map]) {
      weight += columns[key];
      moment += static_cast<double>(key) * columns[key];
    }
  }
  if (!(weight > 0)) return;
  times_.push_back(static_cast<double>(step.number));
  centroids_.push_back(moment / weight);
}

void DriftTracker::finish(DriftSums& sums) const {
  std::vector<double> mean_mass = mass_;
  for (double& mass : mean_mass) mass /= static_cast<double>(shape_.steps);
  sums.spatial_variance.add(variance_of(mean_mass));
  if (!centroids_.empty()) sums.temporal_variance.add(variance_of(centroids_));
  if (centroids_.size() > 1) sums.slope.add(co_moment(times_, centroids_) / co_moment(times_, times_));
}

}  // namespace sinkscope
