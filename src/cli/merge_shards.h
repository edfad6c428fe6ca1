// Shards become a whole: which belongs where, and what they hold.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace sinkscope {

using Paths = std::vector<std::filesystem::path>;

/// Options as they were without --shard.
nlohmann::ordered_json without_shard(nlohmann::ordered_json options);

/// The folders in the order of their shards. `options` are theirs, in the order of `folders`, and each must
/// be an object. Throws Error naming a folder that is no shard, is there twice, or was made with other
/// options, or the shard that is missing.
Paths in_order(const Paths& folders, const std::vector<nlohmann::ordered_json>& options);

/// Joins ended shards of a run into the new run directory `out`. Returns the number of its samples. Throws
/// Error naming the shard that lacks something, or the sample that none has.
std::size_t merge_runs(const Paths& given, const std::filesystem::path& out);

/// Joins ended shards of an evaluation into `out`. Returns the number of its cells. Throws Error as above.
std::size_t merge_evaluations(const Paths& given, const std::filesystem::path& out);

}  // namespace sinkscope
