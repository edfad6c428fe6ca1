// Attention that is not softmax(q k^T / sqrt(d)) v with rotated q and k: the variants of "When Attention Sink
// Emerges in Language Models" (arXiv:2410.10781) and the extra token of "One Token Is Enough"
// (arXiv:2601.19657).
#pragma once

#include <cstdint>

namespace sinkscope {

/// What a query and a key make of each other; s = q.k / sqrt(head_dim) + position bias.
enum class Similarity {
  softmax,        ///< exp(s)
  sigmoid,        ///< 1 / (1 + exp(-s))
  elu_plus_one,   ///< elu(s) + 1
  elu_kernel,     ///< (elu(q) + 1).(elu(k) + 1) / sqrt(head_dim)
  linear_kernel,  ///< s; may be negative
  mlp_kernel,  ///< phi(q).phi(k) / sqrt(head_dim), phi(x) = W2 relu(W1 x), one phi a layer; may be negative
};

/// A key and a value of each layer that belong to no position and that every query sees. The key is not
/// rotated and has no position bias.
enum class KeySlot {
  none,
  sink_token,      ///< those of a learnt token in front of the text that sees nothing but itself
  key_value_bias,  ///< both learnt
  key_bias,        ///< the key learnt, the value zero or fixed
};

/// The value of a key_bias slot: zero, or of a given norm along the first coordinate or along (1, 1, ..., 1).
enum class SlotValue { zero, first, uniform };

/// Buckets of PositionEncoding::relative.
inline constexpr std::int64_t relative_buckets = 32;

enum class PositionEncoding {
  rope,
  none,
  learned,          ///< a table of vectors added to the embeddings
  sinusoid,         ///< sines, then cosines of position / 10000^(2 i / width), added to the embeddings
  alibi,            ///< - slope_h |i - j| added to s
  relative,         ///< T5's buckets of i - j, a learnt number for each bucket and head added to s
  relative_bucket,  ///< the number of the bucket itself is added, as the authors' release did
};

/// Sums below are over the keys a query sees. The default is the attention of every released model here.
struct AttentionVariant {
  Similarity similarity = Similarity::softmax;
  /// Rows are divided by Z = (sum of sim^p)^(1/p); sigmoid and elu by Z + 1e-8; linear and mlp kernels by
  /// max(|sum|, 1).
  bool normalised = true;
  double p = 1;
  double scale = 1;  ///< of the output
  KeySlot slot = KeySlot::none;
  bool slot_shared = false;  ///< one for all heads of a layer
  std::int64_t slot_dims =
      0;  ///< of key_bias: only the first coordinates of the key are learnt, the others 0; 0: all
  SlotValue slot_value = SlotValue::zero;
  double slot_value_norm = 0;
  bool value_bias = false;  ///< a learnt vector for each head is added to its output
  PositionEncoding positions = PositionEncoding::rope;
  /// Autoregressive: every query sees these first positions, too.
  std::int64_t prefix = 0;
  /// x = norm(x + attention(x)), x = norm(x + mlp(x)), and no norm at the end.
  bool post_norm = false;

  bool operator==(const AttentionVariant&) const = default;
  /// Whether the attention itself, from queries, keys and values to its output, is another one.
  bool changes_attention() const {
    AttentionVariant rest = *this;
    rest.prefix = 0;
    rest.post_norm = false;
    if (positions == PositionEncoding::none || positions == PositionEncoding::learned ||
        positions == PositionEncoding::sinusoid)
      rest.positions = PositionEncoding::rope;
    return rest != AttentionVariant{};
  }
};

}  // namespace sinkscope
