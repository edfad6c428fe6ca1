// Pictures through gnuplot.
#pragma once

#include <string>

namespace sinkscope {

/// Runs gnuplot over the script, without the user's own settings. Throws Error when it is not installed
/// (saying which package has it) or when it ends with an error (with its last line). `what` names the picture
/// in errors.
void run_gnuplot(const std::string& script, const std::string& what);

/// Throws as run_gnuplot() where gnuplot is not installed: asked before the work whose result it shall draw.
void require_gnuplot();

/// The text between quotes, as gnuplot takes it without interpreting anything. Control characters become
/// spaces.
std::string gnuplot_quoted(const std::string& text);

}  // namespace sinkscope
