// The arrays that `run --effect` leaves in a sample's file (docs/run-directory.md), in the order of the file.
#pragma once

#include <sinkscope/npz.h>

#include <array>

namespace sinkscope {

struct EffectArray {
  const char* name;
  ArrayType type;
};

inline constexpr std::array<EffectArray, 5> effect_arrays{{{"effect_kl", ArrayType::float32},
                                                           {"effect_agrees", ArrayType::uint8},
                                                           {"effect_confidence", ArrayType::float32},
                                                           {"effect_probability", ArrayType::float32},
                                                           {"removed_mass", ArrayType::float32}}};

}  // namespace sinkscope
