// What a forward pass of an autoregressive model shows of its sinks, sample by sample.
#pragma once

#include <sinkscope/transformer.h>

#include <functional>
#include <span>
#include <vector>

#include "measure/autoregressive.h"

namespace sinkscope {

/// Which keys the queries of this model's layers see, and whether it has a slot and scores made of q.k.
AutoregressiveMeasure autoregressive_measure(const ModelConfig& config, std::int64_t positions,
                                             double epsilon, std::int64_t position);

/// Runs the sequences, all of measure.shape.positions tokens, some at a time, and adds them up. `progress`
/// hears how many are done. Memory is that of a few sequences' states of one layer beside the sums.
AutoregressiveSums measure_sequences(const Transformer& model, const AutoregressiveMeasure& measure,
                                     std::span<const std::vector<std::int32_t>> sequences,
                                     const std::function<void(std::size_t done)>& progress = {});

/// `count` sequences of ids drawn uniformly from 0 .. vocabulary - 1; repeated: of one such id each.
std::vector<std::vector<std::int32_t>> random_sequences(std::size_t count, std::size_t length,
                                                        std::int64_t vocabulary, bool repeated,
                                                        std::uint64_t seed);

}  // namespace sinkscope
