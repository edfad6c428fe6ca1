// How far a long piece of work is, on stderr: a bar on a terminal, a line every few seconds elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace sinkscope {

class Progress {
 public:
  /// quiet: shows nothing.
  Progress(std::string label, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// share: 0 to 1. `details` follows the bar; the time left is worked out here.
  void show(double share, const std::string& details);
  /// Removes the bar from the terminal.
  void finish();
  /// Seconds since this object was made.
  double elapsed() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

/// "42 s", "3 min 05 s", "2 h 10 min".
std::string duration_text(double seconds);

}  // namespace sinkscope
