// A checkpoint of a known model's shapes with random weights, written in the hub's layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/shapes.h"

namespace sinkscope {

struct RandomCheckpoint {
  ModelShape shape;  // its config's layers and weights_dtype may differ from the table's
  std::uint64_t seed = 0;
  std::uint64_t shard_bytes = 5'000'000'000;
  int threads = 1;  // the bytes do not depend on it
};

/// What a written checkpoint consists of.
struct WrittenCheckpoint {
  std::size_t tensors = 0;
  std::size_t weight_files = 0;
  std::uint64_t weight_bytes = 0;  // of the tensors
};

/// Bytes that the folder will take, rounded up.
std::uint64_t needed_bytes(const RandomCheckpoint& checkpoint);

/// Throws Error saying how much is needed when the file system that `folder` is or will be in has less.
void check_free_space(const std::filesystem::path& folder, std::uint64_t needed);

/// Writes config.json, generation_config.json and the weights to `folder`, which must not exist and appears
/// whole. Some megabytes of memory do. `progress` hears the share done, 0 to 1. Throws Error when there is
/// not enough room, before anything is written.
WrittenCheckpoint write_random_checkpoint(const RandomCheckpoint& checkpoint,
                                          const std::filesystem::path& folder,
                                          const std::function<void(double)>& progress = {});

}  // namespace sinkscope
