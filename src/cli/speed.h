// How fast a model runs, measured in turns with what the machine could do at best.
#pragma once

#include <sinkscope/transformer.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "ops/product.h"

namespace sinkscope {

/// What a round measures, in this order.
enum class Work {
  ceiling,  ///< the products of the model's matrices by oneDNN, nothing else
  plain,    ///< a forward pass that records nothing, the head on every row
  columns,  ///< the same with Capture::columns
  full,     ///< the same with Capture::full
  read,     ///< the bytes of all weights read from memory once, nothing else; autoregressive models only
  step,     ///< one step of `run`, columns recorded: a denoising step with the head on masked rows and tokens
            ///< chosen; of an autoregressive model the next token behind all positions but one
};
inline constexpr std::array all_work{Work::ceiling, Work::plain, Work::columns,
                                     Work::full,    Work::read,  Work::step};
std::string_view name_of(Work work);

struct SpeedOptions {
  std::int64_t positions = 512;
  std::int64_t rounds = 5;
  std::uint64_t seed = 0;
  /// Called after each piece of work, the warm-up included: share done, round (0 is the warm-up), seconds.
  std::function<void(double share, std::int64_t round, Work work, double seconds)> progress = {};
};

/// One row of S positions, the first half random tokens, the rest masked: what `run` sees in its first step.
struct SpeedReport {
  std::int64_t positions = 0;
  std::int64_t masked = 0;
  std::array<std::vector<double>, all_work.size()> rounds;  // seconds of every round, by Work
  std::array<double, all_work.size()> seconds{};            // their medians; 0 where nothing was measured
  std::int64_t weight_bytes = 0;                            // that the next token has to read
  std::array<double, all_work.size()> flops{};              // required by the work, 2 per multiply-add
  ProductType ceiling_type = ProductType::f32;
  double peak_resident_mb = 0;  // 10^6 bytes: up to the end of the warm-up, without the ceiling's weights

  double gflops(Work work) const;
  double share_of_ceiling(Work work) const;
  double tokens_per_second(Work work) const;  // positions passed through the model
  double overhead(Work work) const;           // seconds over those of plain, minus 1
  bool measured(Work work) const { return !rounds[static_cast<std::size_t>(work)].empty(); }
  /// What memory allows at best over what a step took: reading the weights once.
  double share_of_bandwidth() const;
};

/// Warms up, then measures round by round. Throws what Transformer::forward and sample_llada throw.
SpeedReport measure_speed(const Transformer& model, const SpeedOptions& options);

}  // namespace sinkscope
