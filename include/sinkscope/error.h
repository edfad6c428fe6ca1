// The two exceptions this library throws. what() is one sentence that names the file, tensor, option or line
// at fault and what would be right.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace sinkscope {

/// Something failed: bad input data, a missing file, a full disk. The program exits 1.
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// The caller asked for something impossible: a wrong option or a combination that cannot work. The program
/// exits 2.
class UsageError : public std::runtime_error {
 public:
  template <typename... Args>
  explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace sinkscope
