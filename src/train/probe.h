// Sinks of a model in training, on texts that stay the same.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/token_cache.h"
#include "train/train_config.h"
#include "train/trainable_model.h"

namespace sinkscope {

/// Rows of equal length.
struct ProbeTexts {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  std::vector<std::int32_t> ids;  // [B, T]
};

/// The first `samples` texts that have `positions` tokens, cut to them. Throws Error when there is none.
ProbeTexts probe_texts(const TokenCache& cache, const ProbeConfig& config);

/// Of an autoregressive model ("When Attention Sink Emerges", T positions, alpha_0 the mean over all queries
/// of their attention to the first key): `sink_rate` = share of (sample, layer, head) with alpha_0 > 0.3,
/// `alpha_first` = the mean of alpha_0, `sink_rates` = the same share for each of the first ten positions k,
/// alpha_k the column sum divided by T - k.
/// Of a masked diffusion model, with a quarter, half and three quarters of the tokens masked in turn (row b:
/// the b modulo 3rd), C_j the column sums: `sink_share` = share of keys with C_j > mean of the others + 3,
/// `sink_rate` = share of (sample, layer, head) with such a key, `largest_column` = the mean over them of max
/// C_j, `alpha_first` = the mean of C_0 / T, `masked_sinks` = share of the sinks that are masks. Of both:
/// Of models with a slot: `slot_rate` and `alpha_slot`, likewise of the share that a row gives to it.
/// `massive_ratio` [L]: norm of the row that leads the residual stream entering a layer over the mean of the
/// others, mean over samples; of the first position for autoregressive models, of the largest for others.
nlohmann::ordered_json probe_sinks(const TrainableModel& model, const ProbeTexts& texts, std::int32_t mask_id,
                                   std::uint64_t seed);

}  // namespace sinkscope
