// Random models of another attention than the released ones'.
#pragma once

#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "checkpoint/random_checkpoint.h"
#include "support/temporary_folder.h"

namespace sinkscope::testing {

/// Of the shape "llada-tiny" or "llama-tiny", of which 16 positions are learnt, where they are. Its files are
/// gone when it is there.
inline std::shared_ptr<const Checkpoint> variant_checkpoint(const std::string& shape_name,
                                                            const AttentionVariant& variant) {
  ModelShape shape = model_shape(shape_name);
  shape.config.attention = variant;
  shape.config.max_positions = 16;
  shape.config.architecture = shape.config.causal() ? "SinkscopeLlamaForCausalLM" : "SinkscopeLLaDAModel";
  const TemporaryFolder folder;
  write_random_checkpoint({.shape = shape, .seed = 1}, folder / "model");
  return std::make_shared<const Checkpoint>(Checkpoint::open(folder / "model"));
}

/// The message of the UsageError that `action` throws; "(no UsageError)" when it throws none.
template <typename Action>
std::string usage_error_of(Action&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(no UsageError)";
}

}  // namespace sinkscope::testing
