#include "measure/sweep.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

// Bin b holds the margins in (edge(b), edge(b + 1)], edge(b) being the float with the bits b << dropped_bits:
// sign, exponent and the first 11 bits of the mantissa remain.
constexpr int dropped_bits = 12;
constexpr std::size_t bin_count = std::size_t{1} << (31 - dropped_bits);

double edge(std::size_t bin) { return std::bit_cast<float>(static_cast<std::uint32_t>(bin) << dropped_bits); }

std::size_t bin_of(double margin) {
  // Upwards: a margin just above an edge must stay above it.
  auto rounded = static_cast<float>(std::min<double>(margin, std::numeric_limits<float>::max()));
  if (rounded < margin) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  return (std::bit_cast<std::uint32_t>(rounded) - 1) >> dropped_bits;
}

// 0 to 40 numerator/denominator. Of whole numbers, so that 12 * 0.025 is 0.3.
std::vector<double> even_grid(int numerator, int denominator) {
  std::vector<double> grid;
  for (int i = 0; i <= 40; ++i) grid.push_back(static_cast<double>(i * numerator) / denominator);
  return grid;
}

}  // namespace

std::optional<std::string_view> threshold_name(SinkRule rule) {
  switch (rule) {
    case SinkRule::paper:
    case SinkRule::visible:
      return "epsilon";
    case SinkRule::zscore:
    case SinkRule::soft:
      return "z";
    case SinkRule::topk:
      break;
  }
  return std::nullopt;
}

std::vector<double> sweep_grid(const DetectionOptions& options) {
  if (options.rule == SinkRule::topk) return {};
  const bool mean = options.rule == SinkRule::visible ||
                    (options.rule == SinkRule::paper && options.scale == SinkScale::mean);
  if (mean) return even_grid(1, 40);
  if (options.rule == SinkRule::paper && options.scale == SinkScale::percent) return even_grid(5, 2);
  return even_grid(1, 4);
}

MarginCounts::MarginCounts(std::vector<double> grid)
    : grid_(std::move(grid)), between_(grid_.size()), bins_(grid_.empty() ? 0 : bin_count) {}

void MarginCounts::add(double margin) {
  if (!(margin > 0) || grid_.empty()) return;
  ++bins_[bin_of(margin)];
  // The grid is even: a guess, set right where rounding moved it.
  const std::size_t last = grid_.size() - 1;
  auto i = static_cast<std::size_t>(std::min(margin / grid_[1], static_cast<double>(last)));
  while (i > 0 && !(margin > grid_[i])) --i;
  while (i < last && margin > grid_[i + 1]) ++i;
  ++between_[i];
}

void MarginCounts::add(const MarginCounts& other) {
  for (std::size_t i = 0; i < between_.size(); ++i) between_[i] += other.between_[i];
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

std::vector<std::uint64_t> MarginCounts::above_grid() const {
  std::vector<std::uint64_t> above(between_);
  for (std::size_t i = above.size(); i-- > 1;) above[i - 1] += above[i];
  return above;
}

MarginCounts::Found MarginCounts::find(std::uint64_t count) const {
  Found found;
  std::size_t bin = bins_.size();
  while (bin > 0 && found.above + bins_[bin - 1] <= count) found.above += bins_[--bin];
  found.threshold = bin < bins_.size() ? edge(bin) : 0;
  return found;
}

}  // namespace sinkscope
