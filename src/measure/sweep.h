// How many keys are sinks, as a function of the rule's threshold, from one look at each key: its margin.
#pragma once

#include <sinkscope/sinks.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sinkscope {

/// "epsilon" or "z"; none for rule topk, which has no threshold.
std::optional<std::string_view> threshold_name(SinkRule rule);

/// The thresholds at which shares are counted, ascending from 0: of rule paper 0 to 10 by 0.25 on the sum
/// scale, to 1 by 0.025 on the mean scale, to 100 by 2.5 on the percent scale; of visible 0 to 1 by 0.025; of
/// zscore and soft 0 to 10 by 0.25.
std::vector<double> sweep_grid(const DetectionOptions& options);

class MarginCounts {
 public:
  explicit MarginCounts(std::vector<double> grid);

  void add(double margin);
  void add(const MarginCounts& other);

  /// How many of the margins added exceed grid[i].
  std::vector<std::uint64_t> above_grid() const;

  /// The smallest threshold of a fine grid, whose steps are 2^-11 of the value, that at most `count` margins
  /// exceed, and how many do exactly.
  struct Found {
    double threshold = 0;
    std::uint64_t above = 0;
  };
  Found find(std::uint64_t count) const;

 private:
  std::vector<double> grid_;
  std::vector<std::uint64_t> between_;  // [grid] margins above grid[i] and not above grid[i+1]
  std::vector<std::uint64_t> bins_;     // positive margins by the leading bits of a float
};

}  // namespace sinkscope
