// What a recorded sample tells about its way from masks to tokens: states, confidences, removed keys. The
// file may come from anywhere.
#pragma once

#include <sinkscope/npz.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/effect.h"
#include "measure/sample_steps.h"

namespace sinkscope {

class Trajectory {
 public:
  /// Needs `states` and `prompt_length`. Throws Error naming the file and the array that is missing, has
  /// another type or another shape, or holds what cannot be an id.
  Trajectory(const std::filesystem::path& file, const RunShape& run);

  const std::string& file() const { return where_; }
  std::size_t steps() const { return steps_; }          ///< T, forwards or generated tokens
  std::size_t positions() const { return positions_; }  ///< S
  std::size_t prompt_length() const { return prompt_length_; }

  /// [S] input ids of forward t, t = T: the final ids. The sample stays in its final state: so do later t.
  std::span<const std::int32_t> state(std::size_t t) const;
  std::span<const std::int32_t> prompt() const { return state(0).first(prompt_length_); }
  /// Generated ids of the final state; an autoregressive sample's end where its -1 begin.
  std::span<const std::int32_t> generated() const;

  bool has_confidence() const { return has_confidence_; }
  /// [S] of forward t < T; not finite where the position was no candidate.
  std::vector<float> confidence(std::size_t t) const;

  bool has_masked_keys() const { return has_masked_keys_; }
  /// How many (layer, head, key) were removed in forward t < T; with rank own, from one query at least.
  std::size_t masked_keys(std::size_t t) const;

  /// What `run --effect` recorded of all forwards; `recorded` is false where it was not given. Throws as
  /// read_effect().
  EffectSums effect() const;

 private:
  void check_ids() const;
  bool check_optional(const char* name, ArrayType type, const std::vector<std::int64_t>& shape) const;

  std::string where_;
  NpzFile file_;
  bool autoregressive_;
  std::size_t steps_ = 0, positions_ = 0, prompt_length_ = 0;
  std::vector<std::int32_t> states_;  // [T+1,S]
  bool has_confidence_ = false, has_masked_keys_ = false;
  std::string masked_keys_;  // the array's name
  bool has_effect_ = false;
};

}  // namespace sinkscope
