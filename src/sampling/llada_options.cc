#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include <cmath>
#include <string>

#include "sampling/schedule.h"

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

void validate(const LladaOptions& options) {
  require_positive("--gen-len", options.gen_len);
  require_positive("--steps", options.steps);
  require_positive("--block-len", options.block_len);
  require_not_negative("--temperature", options.temperature);
  require_not_negative("--cfg", options.cfg);
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
  if ((options.logits_eos_inf || options.confidence_eos_eot_inf) && !options.eos_id)
    throw UsageError("{} needs an end token, and the checkpoint names no eos_token_id",
                     options.logits_eos_inf ? "--logits-eos-inf" : "--confidence-eos-eot-inf");
  validate(options.sinks);
}

}  // namespace sinkscope
