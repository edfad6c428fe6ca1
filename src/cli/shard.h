// One part of a piece of work that several processes share.
#pragma once

#include <cstdint>
#include <string>

namespace sinkscope {

/// Process `index` of `count`: it does every count-th sample, from `index` on.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;

  bool has(std::int64_t sample) const { return sample % count == index; }
  /// How many of `samples` it does.
  std::int64_t share_of(std::int64_t samples) const { return (samples - index + count - 1) / count; }
  bool is_all() const { return count == 1; }
};

/// "2/8" -> the third of eight; "" -> all. Throws UsageError for others.
Shard parse_shard(const std::string& text);

/// What the launcher of this process says, as parse_shard() reads it: RANK and WORLD_SIZE (torchrun),
/// OMPI_COMM_WORLD_RANK and _SIZE or PMI_RANK and PMI_SIZE (mpirun), SLURM_PROCID and SLURM_STEP_NUM_TASKS
/// (srun);
/// "" where it was started alone. `source` gets the names. Throws UsageError where they hold no numbers.
std::string shard_of_launcher(std::string& source);

/// FOLDER.shard-2-of-8; FOLDER itself for all.
std::string shard_folder(const std::string& folder, const Shard& shard);

}  // namespace sinkscope
