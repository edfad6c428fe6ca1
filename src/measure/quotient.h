// Division in results.
#pragma once

#include <nlohmann/json.hpp>

namespace sinkscope {

/// Null where there is nothing to divide by: no number is better than a wrong one.
template <typename Numerator, typename Denominator>
nlohmann::ordered_json quotient(Numerator numerator, Denominator denominator) {
  if (denominator == 0) return nullptr;
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

}  // namespace sinkscope
