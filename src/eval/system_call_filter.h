// The system calls that a program in the sandbox is refused.
#pragma once

#include "base/descriptor.h"

namespace sinkscope {

/// A file with the seccomp filter as bubblewrap's --seccomp reads it. Refused calls fail with EPERM.
/// Throws Error when libseccomp cannot build it.
Descriptor system_call_filter();

}  // namespace sinkscope
