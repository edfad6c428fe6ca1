// What is done to keys that an intervention picked.
#pragma once

namespace sinkscope {

/// A_ij is the softmax over all keys, R the picked ones.
enum class KeyAction {
  remove,      ///< scores of -infinity: the others' softmax
  scale,       ///< A_ij times eta for j in R, the row divided by its new sum
  value_zero,  ///< A stays; the values of R are zero
  value_mean,  ///< A stays; the values of R are the mean over all keys of the layer and key head in this pass
};

struct KeyChange {
  KeyAction action = KeyAction::remove;
  double eta = 1;  ///< of scale, above 0

  bool operator==(const KeyChange&) const = default;
};

}  // namespace sinkscope
