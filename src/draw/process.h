// Programs that draw for us: started with arguments, waited for, their complaints kept.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace sinkscope {

/// A file without a name, in memory. Programs started while it lives can open path().
class MemoryFile {
 public:
  /// Throws Error where the system has no memory for it.
  MemoryFile();

  std::string path() const;
  /// Behind what is there.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// All of it, from the beginning, also what another process wrote.
  std::string content() const;

 private:
  Descriptor descriptor_;
};

struct ProcessResult {
  bool found = true;      ///< there is such a program
  bool succeeded = true;  ///< it ended by itself with status 0
  std::string output;     ///< what it wrote to standard output
  std::string errors;     ///< and to standard error
};

/// arguments[0] is looked for in PATH; it works in `folder`, where one is given. Standard input is empty.
/// Throws Error where no process can be started.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& folder = "");

/// The last line that is not empty (or made of gnuplot's pointers ^): where a program says what is wrong.
std::string last_line(const std::string& said);

}  // namespace sinkscope
