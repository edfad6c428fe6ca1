#pragma once

namespace sinkscope {

/// From now on this process keeps the memory it frees and gives it out again. A training step allocates the
/// same hundreds of megabytes as the one before; otherwise the C library returns them to the kernel each
/// time, which then clears every page anew: a fifth of a small model's step. For the whole process, and for
/// good; without effect on other C libraries than glibc.
void keep_freed_memory();

}  // namespace sinkscope
