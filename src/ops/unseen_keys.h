// Which keys a causal query does not see, for attention in libtorch's operations.
#pragma once

#include <ATen/core/Tensor.h>

namespace sinkscope {

/// bool [R, keys], true where the query does not see the key: those behind its own position (int64 [R]) and,
/// with a window, those before the last `window` ones up to its own; but all see the first `prefix` keys. 0:
/// neither.
at::Tensor unseen_keys(const at::Tensor& query_positions, std::int64_t keys, std::int64_t window,
                       std::int64_t prefix);

}  // namespace sinkscope
