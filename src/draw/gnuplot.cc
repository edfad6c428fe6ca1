#include "draw/gnuplot.h"

#include <sinkscope/error.h>

#include "draw/process.h"

namespace sinkscope {

void run_gnuplot(const std::string& script, const std::string& what) {
  MemoryFile file;
  file.write(script);
  const ProcessResult result = run_process({"gnuplot", "--default-settings", file.path()});
  if (!result.found)
    throw Error("gnuplot is not installed, and it draws the pictures; Debian's package gnuplot-nox has it");
  if (!result.succeeded) throw Error("gnuplot did not draw {}: {}", what, last_line(result.errors));
}

void require_gnuplot() { run_gnuplot("", "nothing"); }

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
  }
  return quoted + "'";
}

}  // namespace sinkscope
