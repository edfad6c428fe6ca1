#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sinkscope {
namespace {

constexpr double bar_interval = 0.1;   // seconds between redraws
constexpr double line_interval = 5.0;  // seconds between lines where stderr is no terminal
constexpr int bar_width = 24;

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, std::min(seconds, 1e9))));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { finish(); }

double Progress::elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::show(double share, const std::string& details) {
  if (quiet_) return;
  const auto now = Clock::now();
  const double since_last = std::chrono::duration<double>(now - last_).count();
  if (since_last < (terminal_ ? bar_interval : line_interval)) return;
  last_ = now;
  const double bounded = std::clamp(share, 0.0, 1.0);
  const std::string left = bounded > 0 ? duration_text(elapsed() * (1 - bounded) / bounded) + " left" : "";
  const std::string text =
      fmt::format("{:3.0f} %  {}{}{}", bounded * 100, details, details.empty() ? "" : "  ", left);
  if (terminal_) {
    const auto filled = static_cast<std::size_t>(bounded * bar_width);
    const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
    std::fprintf(stderr, "\r\033[K%s [%s] %s", label_.c_str(), bar.c_str(), text.c_str());
    drawn_ = true;
  } else {
    std::fprintf(stderr, "%s %s\n", label_.c_str(), text.c_str());
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace sinkscope
