#include "draw/gnuplot.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <cctype>
#include <string_view>

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

// Gnuplot takes lines apart before it looks at quotes: backquotes are commands, @ begins a macro, and within
// single quotes a doubled one at the beginning ends the text. So only what cannot mean anything stays as it
// is.
std::string gnuplot_quoted(const std::string& text) {
  constexpr std::string_view plain = " .,:;=+-()<>|/_";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0 || plain.find(c) != std::string_view::npos)
      quoted += c;
    else
      quoted += byte < 0x20 || byte == 0x7f ? " " : fmt::format("\\{:03o}", byte);
  }
  return quoted + "\"";
}

}  // namespace sinkscope
