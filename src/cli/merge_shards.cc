#include "cli/merge_shards.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include "cli/shard.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

// Of `options`, which shard they are of.
Shard shard_in(const OrderedJson& options, const fs::path& folder) {
  const OrderedJson shard = options.is_object() ? options.value("shard", OrderedJson()) : OrderedJson();
  if (!shard.is_string() || shard.get<std::string>().empty())
    throw Error("{} is no shard: it was not made with --shard", folder.string());
  try {
    return parse_shard(shard.get<std::string>());
  } catch (const UsageError& error) {
    throw Error("{} holds options that cannot be: {}", folder.string(), error.what());
  }
}

}  // namespace

OrderedJson without_shard(OrderedJson options) {
  options["shard"] = "";
  return options;
}

Paths in_order(const Paths& folders, const std::vector<OrderedJson>& options) {
  const std::int64_t count = shard_in(options.front(), folders.front()).count;
  Paths ordered(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const Shard shard = shard_in(options[i], folders[i]);
    if (shard.count != count)
      throw Error("{} is one of {} shards, {} one of {}", folders.front().string(), count,
                  folders[i].string(), shard.count);
    if (without_shard(options[i]) != without_shard(options.front()))
      throw Error("{} was made with other options than {}", folders[i].string(), folders.front().string());
    fs::path& place = ordered[static_cast<std::size_t>(shard.index)];
    if (!place.empty()) throw Error("{} and {} are the same shard", place.string(), folders[i].string());
    place = folders[i];
  }
  for (std::int64_t index = 0; index < count; ++index)
    if (ordered[static_cast<std::size_t>(index)].empty())
      throw Error("shard {} of {} is missing", index, count);
  return ordered;
}

}  // namespace sinkscope
