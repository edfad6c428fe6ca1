// Keys and values that later passes need not compute again.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/model_config.h>

#include <cstdint>
#include <vector>

namespace sinkscope {

/// Keys, rotated, and values of every layer for several sequences, the slots. A position's rotation depends
/// on nothing but its place, so that keeping keys before or after it is the same.
class KeyValueCache {
 public:
  /// Slots of at most capacities[slot] positions, empty at first.
  KeyValueCache(const ModelConfig& config, at::ScalarType dtype, const at::Device& device,
                const std::vector<std::int64_t>& capacities);

  std::int64_t slots() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t capacity(std::int64_t slot) const;
  /// Positions 0 to length - 1 are there.
  std::int64_t length(std::int64_t slot) const { return lengths_[static_cast<std::size_t>(slot)]; }
  /// Forgets the positions from `length` on.
  void truncate(std::int64_t slot, std::int64_t length);

  /// Bytes of all layers for this many positions.
  static std::int64_t bytes(const ModelConfig& config, at::ScalarType dtype, std::int64_t positions);

 private:
  friend class ForwardPass;
  std::vector<std::int64_t> begins_;   // [slots + 1] first row of each slot
  std::vector<std::int64_t> lengths_;  // [slots]
  std::vector<at::Tensor> keys_;       // [L] of [rows, Hkv * head_dim]
  std::vector<at::Tensor> values_;     // [L]
};

/// The tokens of sequence b of a batch stand at positions first_positions[b] and following of slot slots[b],
/// whose length must be at least that. A pass writes their keys and values there, over what was there;
/// queries see every position of the slot (a causal model's: those up to their own), and the slot is
/// afterwards at least as long as the tokens reach.
struct CachedTokens {
  KeyValueCache* cache = nullptr;
  std::vector<std::int64_t> slots;            // [B], each at most once
  std::vector<std::int64_t> first_positions;  // [B]
};

}  // namespace sinkscope
