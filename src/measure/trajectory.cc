#include "measure/trajectory.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>

namespace sinkscope {
namespace {

// Behind the end of an autoregressive sequence.
constexpr std::int32_t no_token = -1;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace

Trajectory::Trajectory(const std::filesystem::path& file, const RunShape& run)
    : where_(file.string()), file_(file), autoregressive_(!run.mask_id) {
  const std::vector<std::int64_t> shape = file_.array("states").shape;
  if (shape.size() != 2 || shape[0] < 2 || shape[1] < 1)
    throw Error("{}: states has the shape {}; [T+1,S] with T and S of at least 1 is right", where_,
                shape_text(shape));
  steps_ = static_cast<std::size_t>(shape[0] - 1);
  positions_ = static_cast<std::size_t>(shape[1]);
  const std::int32_t length = file_.int32_scalar("prompt_length");
  if (length < 0 || length > shape[1])
    throw Error("{}: prompt_length is {}; it must lie between 0 and the {} positions", where_, length,
                positions_);
  prompt_length_ = static_cast<std::size_t>(length);
  states_ = file_.int32s("states");
  check_ids();
  if (autoregressive_) return;
  has_confidence_ = check_optional("confidence", ArrayType::float32, {shape[0] - 1, shape[1]});
  has_masked_keys_ =
      check_optional("masked_keys", ArrayType::uint8, {shape[0] - 1, run.layers, run.heads, shape[1]});
}

void Trajectory::check_ids() const {
  for (std::size_t t = 0; t <= steps_; ++t) {
    const std::span<const std::int32_t> row = state(t);
    const auto end = autoregressive_ ? std::find(row.begin(), row.end(), no_token) : row.end();
    const auto wrong = std::find_if(row.begin(), end, [](std::int32_t id) { return id < 0; });
    if (wrong != end) throw Error("{}: states holds the id {}; ids are at least 0", where_, *wrong);
    const auto behind = std::find_if(end, row.end(), [](std::int32_t id) { return id != no_token; });
    if (behind != row.end())
      throw Error("{}: states holds the id {} behind the sequence's end; there is nothing but -1", where_,
                  *behind);
    if (static_cast<std::size_t>(end - row.begin()) < prompt_length_)
      throw Error("{}: states ends within the prompt, which has {} tokens", where_, prompt_length_);
  }
}

bool Trajectory::check_optional(const char* name, ArrayType type,
                                const std::vector<std::int64_t>& shape) const {
  if (!file_.contains(name)) return false;
  const NpzArray array = file_.array(name);
  if (array.type != type)
    throw Error("{}: {} holds {}; {} is right", where_, name, name_of(array.type), name_of(type));
  if (array.shape != shape)
    throw Error("{}: {} has the shape {}; states and run.json ask for {}", where_, name,
                shape_text(array.shape), shape_text(shape));
  return true;
}

std::span<const std::int32_t> Trajectory::state(std::size_t t) const {
  return std::span(states_).subspan(std::min(t, steps_) * positions_, positions_);
}

std::span<const std::int32_t> Trajectory::generated() const {
  const std::span<const std::int32_t> row = state(steps_).subspan(prompt_length_);
  const auto end = autoregressive_ ? std::find(row.begin(), row.end(), no_token) : row.end();
  return row.first(static_cast<std::size_t>(end - row.begin()));
}

std::vector<float> Trajectory::confidence(std::size_t t) const { return file_.floats("confidence", t, 1); }

std::size_t Trajectory::masked_keys(std::size_t t) const {
  const std::span<const std::byte> all = file_.array("masked_keys").bytes;
  const std::span<const std::byte> step = all.subspan(t * (all.size() / steps_), all.size() / steps_);
  return static_cast<std::size_t>(
      std::count_if(step.begin(), step.end(), [](std::byte key) { return key != std::byte{0}; }));
}

}  // namespace sinkscope
