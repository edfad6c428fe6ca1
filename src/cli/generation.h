// Samples of one run, generated and written.
#pragma once

#include <sinkscope/run_directory.h>
#include <sinkscope/tokenizer.h>
#include <sinkscope/transformer.h>

#include <optional>
#include <variant>
#include <vector>

#include "cli/prompts.h"
#include "cli/run_options.h"

namespace sinkscope {

/// A prompt that is ready for the model.
struct PreparedPrompt {
  Prompt prompt;
  std::vector<std::int32_t> ids;
};

/// The sampler of the model's kind, with its options.
using Sampler = std::variant<LladaOptions, DreamOptions, AutoregressiveOptions>;
Sampler choose_sampler(const SamplingOptions& options, Generation generation, const SpecialIds& ids);

/// Generates what is not finished yet, batch by batch, and writes each sample as it ends: its arrays stream
/// to disk step by step, its line follows. Of a shard only the shard's samples. Prints each text to stdout
/// unless the options say not to. Throws the first error; finished samples stay.
void generate_samples(const Transformer& model, const std::optional<Tokenizer>& tokenizer,
                      const std::vector<PreparedPrompt>& prompts, const Sampler& sampler,
                      const RunOptions& options, RunDirectory& directory);

}  // namespace sinkscope
