// How a checkpoint's tensors are cut into files, and the index that says which file holds which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"

namespace sinkscope {

/// The tensors of each file, in the order given: a file takes tensors until the next would carry it over
/// `largest_bytes`. A tensor larger than that has a file of its own.
std::vector<std::vector<StoredTensor>> plan_shards(const std::vector<StoredTensor>& tensors,
                                                   std::uint64_t largest_bytes);

/// "model-00002-of-00006.safetensors" for index 1 of 6; "model.safetensors" where there is only one.
std::string shard_name(std::size_t index, std::size_t count);

/// The text of model.safetensors.index.json.
std::string weight_index_text(const std::vector<std::vector<StoredTensor>>& shards);

}  // namespace sinkscope
