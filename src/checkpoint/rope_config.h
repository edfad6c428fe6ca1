// What config.json says of rotary positions: rope_theta and rope_scaling, or rope_parameters in newer files.
#pragma once

#include <sinkscope/model_config.h>

#include "checkpoint/config_keys.h"

namespace sinkscope {

/// Fills rope_theta (10000 where the file is silent, as in the library's own code), rope_factor and
/// llama3_scaling. Throws Error for any kind of scaling but none, `linear` and `llama3`, and for a partial
/// rotation.
void read_rope(const ConfigSource& source, ModelConfig& config);

}  // namespace sinkscope
