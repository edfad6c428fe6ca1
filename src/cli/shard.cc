#include "cli/shard.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace sinkscope {
namespace {

constexpr std::int64_t most_shards = 1'000'000;

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t slash = text.find('/');
  Shard shard;
  const bool right = slash != std::string::npos &&
                     read_number(std::string_view(text).substr(0, slash), shard.index) &&
                     read_number(std::string_view(text).substr(slash + 1), shard.count) &&
                     shard.index < shard.count && shard.count <= most_shards;
  if (!right)
    throw UsageError("--shard \"{}\" is not of the form I/N with I from 0 to N - 1, as in 0/4", text);
  return shard;
}

std::string shard_of_launcher(std::string& source) {
  constexpr struct {
    const char* rank;
    const char* size;
  } launchers[] = {{"RANK", "WORLD_SIZE"},
                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                   {"PMI_RANK", "PMI_SIZE"},
                   {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& launcher : launchers) {
    const char* const rank = std::getenv(launcher.rank);
    const char* const size = std::getenv(launcher.size);
    if (rank == nullptr || size == nullptr) continue;
    source = fmt::format("{} and {}", launcher.rank, launcher.size);
    Shard shard;
    if (!read_number(rank, shard.index) || !read_number(size, shard.count) || shard.index >= shard.count ||
        shard.count > most_shards)
      throw UsageError(
          "the environment's {}={} and {}={} are no rank and number of processes; unset them, or give "
          "--shard I/N",
          launcher.rank, rank, launcher.size, size);
    return shard.is_all() ? "" : fmt::format("{}/{}", shard.index, shard.count);
  }
  return "";
}

std::string shard_folder(const std::string& folder, const Shard& shard) {
  return shard.is_all() ? folder : fmt::format("{}.shard-{}-of-{}", folder, shard.index, shard.count);
}

}  // namespace sinkscope
