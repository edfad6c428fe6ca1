#include <fmt/format.h>
#include <sinkscope/dream_sampler.h>
#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "sampling/schedule.h"
#include "sampling/token_distribution.h"

namespace sinkscope {
namespace {

void require_positive(std::string_view option, std::int64_t value) {
  if (value < 1) throw UsageError("{} is {}; it must be at least 1", option, value);
  constexpr std::int64_t absurd = std::int64_t{1} << 24;
  if (value > absurd) throw UsageError("{} is {}; more than {} is not supported", option, value, absurd);
}

void require_not_negative(std::string_view option, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    throw UsageError("{} is {}; it must be a number of at least 0", option, value);
}

std::string nearest(std::int64_t value, std::int64_t unit) {
  const std::vector<std::int64_t> choices = nearest_multiples(value, unit);
  return choices.size() == 1 ? std::to_string(choices[0]) : fmt::format("{} or {}", choices[0], choices[1]);
}

}  // namespace

void validate_effect(bool effect, const InterventionOptions& sinks) {
  if (effect && sinks.top_k == 0)
    throw UsageError(
        "--effect compares predictions with and without an intervention, and there is none; give "
        "--sink-top-k");
}

void check_row_counts(const InterventionOptions& sinks, std::int64_t positions) {
  constexpr std::int64_t most = std::numeric_limits<std::uint16_t>::max();
  if (sinks.top_k > 0 && sinks.rank == SinkRank::own && positions > most)
    throw UsageError("--sink-rank own counts queries in 16 bits: a sample may have {} positions, not {}",
                     most, positions);
}

void validate_blocks(const DenoisingOptions& options) {
  require_positive("--block-len", options.block_len);
  if (options.gen_len % options.block_len != 0)
    throw UsageError(
        "--gen-len {} is not a multiple of --block-len {}; the nearest that works is --gen-len {}",
        options.gen_len, options.block_len, nearest(options.gen_len, options.block_len));
  const std::int64_t blocks = options.gen_len / options.block_len;
  if (options.steps % blocks != 0)
    throw UsageError(
        "--steps {} is not a multiple of the number of blocks, {} (--gen-len {} / --block-len {}); the "
        "nearest that works is --steps {}",
        options.steps, blocks, options.gen_len, options.block_len, nearest(options.steps, blocks));
}

void validate(const DenoisingOptions& options) {
  require_positive("--gen-len", options.gen_len);
  require_positive("--steps", options.steps);
  require_not_negative("--temperature", options.temperature);
  if (options.threshold && !(*options.threshold >= 0 && *options.threshold <= 1))
    throw UsageError("--threshold is {}; it is compared with a probability, so it must be from 0 to 1",
                     *options.threshold);
  if (options.cache != CacheMode::none && !options.maps.empty())
    throw UsageError(
        "--maps are of all queries, and with --cache a step computes some of them; give one of them");
  validate_effect(options.effect, options.sinks);
  validate(options.sinks);
}

void validate(const LladaOptions& options) {
  validate(static_cast<const DenoisingOptions&>(options));
  validate_blocks(options);
  require_not_negative("--cfg", options.cfg);
  if ((options.logits_eos_inf || options.confidence_eos_eot_inf) && !options.eos_id)
    throw UsageError("{} needs an end token, and the checkpoint names no eos_token_id",
                     options.logits_eos_inf ? "--logits-eos-inf" : "--confidence-eos-eot-inf");
  if (options.threshold && options.remasking == Remasking::random)
    throw UsageError(
        "--threshold is a bound on confidence, which --remasking random does not use; give one of them");
}

void validate(const DreamOptions& options) {
  validate(static_cast<const DenoisingOptions&>(options));
  require_not_negative("--alg-temp", options.alg_temp);
  validate_filters(options.top_p, options.top_k);
  if (!(options.eps > 0 && options.eps < 1))
    throw UsageError("--eps is {}; the time steps end there, so it must be above 0 and below 1", options.eps);
  if (options.cache != CacheMode::none) {
    validate_blocks(options);
    if (!options.threshold && options.alg == DreamAlgorithm::origin)
      throw UsageError(
          "--alg origin fills no blocks; with --cache give --alg entropy, maskgit_plus or topk_margin, or "
          "--threshold");
  }
}

}  // namespace sinkscope
