#include "measure/step.h"

namespace sinkscope {

int largest_of(std::span<const float> columns, std::span<const int> keys) {
  int best = -1;
  for (const int key : keys)
    if (best < 0 || columns[key] > columns[best]) best = key;
  return best;
}

void find_sinks(Step& step, const DetectionOptions& options) {
  const std::size_t size = step.shape.maps() * step.shape.positions;
  const float* parts = step.by_class.data();
  step.columns.resize(size);
  // In this order NumPy's sum(axis=1) of the array gives the same bits.
  for (std::size_t i = 0; i < size; ++i) step.columns[i] = (parts[i] + parts[size + i]) + parts[2 * size + i];
  step.sinks.resize(step.shape.maps());
  step.largest.resize(step.shape.maps());
  for (std::size_t map = 0; map < step.shape.maps(); ++map) {
    const std::span<const float> columns = step.columns_of(map);
    step.sinks[map] = detect_sinks(columns, options);
    step.largest[map] = largest_of(columns, step.sinks[map]);
  }
}

}  // namespace sinkscope
