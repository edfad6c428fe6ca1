#include "measure/trajectory.h"

#include <sinkscope/error.h>

#include <algorithm>

#include "measure/recorded_run.h"

namespace sinkscope {
namespace {

// Behind the end of an autoregressive sequence.
constexpr std::int32_t no_token = -1;

}  // namespace

Trajectory::Trajectory(const std::filesystem::path& file, const RunShape& run)
    : where_(file.string()), file_(file), autoregressive_(!run.mask_id) {
  RecordedStates states = read_states(file_, where_);
  steps_ = states.steps;
  positions_ = states.positions;
  prompt_length_ = states.prompt_length;
  states_ = std::move(states.ids);
  check_ids();
  const auto steps = static_cast<std::int64_t>(steps_), positions = static_cast<std::int64_t>(positions_);
  has_effect_ = has_effect(
      file_, where_, autoregressive_ ? std::vector<std::int64_t>{steps} : std::vector{steps, positions});
  if (autoregressive_) return;
  has_confidence_ = check_optional("confidence", ArrayType::float32, {steps, positions});
  const std::vector<std::int64_t> of_keys{steps, run.layers, run.heads, positions};
  const bool by_query = check_optional("queries_without_key", ArrayType::uint16, of_keys);
  masked_keys_ = by_query ? "queries_without_key" : "masked_keys";
  has_masked_keys_ = by_query || check_optional("masked_keys", ArrayType::uint8, of_keys);
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

EffectSums Trajectory::effect() const {
  EffectSums sums;
  std::vector<RecordedEffect> tokens;
  for (std::size_t t = 0; has_effect_ && t < steps_; ++t) {
    const std::vector<RecordedEffect> step = read_effect(file_, where_, t);
    if (autoregressive_)
      tokens.insert(tokens.end(), step.begin(), step.end());
    else
      add_step(sums, step);
  }
  if (!has_effect_ || !autoregressive_) return sums;
  // A step has one prediction: the sample's tokens are compared with each other.
  std::erase_if(tokens, [](const RecordedEffect& token) { return token.removed_mass == 0; });
  add_step(sums, tokens);
  sums.steps = tokens.size();
  return sums;
}

std::size_t Trajectory::masked_keys(std::size_t t) const {
  const std::vector<float> step = file_.floats(masked_keys_, t, 1);
  return static_cast<std::size_t>(
      std::count_if(step.begin(), step.end(), [](float queries) { return queries != 0; }));
}

}  // namespace sinkscope
