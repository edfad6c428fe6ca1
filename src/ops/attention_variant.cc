#include "ops/attention_variant.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr double least_sum = 1e-8;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

bool is_signed(Similarity similarity) {
  return similarity == Similarity::linear_kernel || similarity == Similarity::mlp_kernel;
}

// exp(x) left of 0, so that nothing is lost where elu(x) + 1 would cancel.
at::Tensor elu_plus_one(const at::Tensor& x) { return at::exp(x.clamp_max(0)) + at::relu(x); }

// The kernel's features of queries or keys.
at::Tensor features(const VariantOfLayer& layer, const at::Tensor& x) {
  switch (layer.variant->similarity) {
    case Similarity::elu_kernel:
      return elu_plus_one(x);
    case Similarity::mlp_kernel:
      return at::matmul(at::relu(at::matmul(x, layer.weights->kernel_in.t())), layer.weights->kernel_out.t());
    default:
      return x;
  }
}

at::Tensor distances(const at::Tensor& query_positions, const at::Tensor& key_positions) {
  return query_positions.unsqueeze(1) - key_positions.unsqueeze(0);
}

// [H, R, K], or [R, K] where it is one for all heads; undefined: none.
at::Tensor position_bias(const VariantOfLayer& layer, std::int64_t heads, const at::Tensor& query_positions,
                         const at::Tensor& key_positions, bool causal, const at::TensorOptions& options) {
  switch (layer.variant->positions) {
    case PositionEncoding::alibi:
      return -alibi_slopes(heads, options).view({heads, 1, 1}) *
             distances(query_positions, key_positions).abs().to(options.dtype());
    case PositionEncoding::relative: {
      const at::Tensor buckets = relative_buckets_of(query_positions, key_positions, causal);
      return at::index_select(layer.weights->relative_bias, 1, buckets.flatten())
          .view({heads, buckets.size(0), buckets.size(1)});
    }
    case PositionEncoding::relative_bucket:
      return relative_buckets_of(query_positions, key_positions, causal).to(options.dtype());
    default:
      return {};
  }
}

// exp(s) / (sum of exp(p s))^(1/p)
at::Tensor softmax_rows(const AttentionVariant& variant, const at::Tensor& scores, const at::Tensor& hidden) {
  const auto over = [&](const at::Tensor& seen) {
    return variant.p == 1 ? at::softmax(seen, -1)
                          : at::exp(seen - at::logsumexp(seen * variant.p, -1, true) / variant.p);
  };
  if (!hidden.defined()) return over(scores);
  const at::Tensor nothing_left = hidden.all(-1, /*keepdim=*/true);
  // A row of which nothing is left would be 0 / 0; it is computed as if all were, and is zero then.
  const at::Tensor kept =
      scores.masked_fill(at::logical_and(hidden, at::logical_not(nothing_left)), minus_infinity);
  return over(kept).masked_fill(nothing_left, 0.0);
}

at::Tensor similarities(Similarity similarity, const at::Tensor& scores) {
  switch (similarity) {
    case Similarity::sigmoid:
      return at::sigmoid(scores);
    case Similarity::elu_plus_one:
      return elu_plus_one(scores);
    default:
      return scores;
  }
}

// (sum of rows^p)^(1/p) in units of each row's largest number, of which no power underflows; rows of zeros
// give about zero.
at::Tensor norms(const at::Tensor& rows, double p) {
  const at::Tensor unit = rows.detach().amax(-1, true).clamp_min(std::numeric_limits<float>::min());
  return unit * at::pow(at::pow(rows / unit, p).sum(-1, true).clamp_min(1), 1 / p);
}

at::Tensor divisors(const AttentionVariant& variant, const at::Tensor& rows) {
  if (is_signed(variant.similarity)) return rows.sum(-1, true).abs().clamp_min(1);
  return (variant.p == 1 ? rows.sum(-1, true) : norms(rows, variant.p)) + least_sum;
}

// Buckets of distances >= 0 of which the first half are exact.
at::Tensor buckets_of(const at::Tensor& distance, std::int64_t buckets) {
  const std::int64_t exact = buckets / 2;
  const double farthest = 128;
  const at::Tensor far =
      (at::log(distance.clamp_min(exact).to(at::kDouble) / static_cast<double>(exact)) /
       std::log(farthest / static_cast<double>(exact)) * static_cast<double>(buckets - exact))
          .floor()
          .to(at::kLong) +
      exact;
  return at::where(distance < exact, distance, far.clamp_max(buckets - 1));
}

}  // namespace

at::Tensor slot_key(const at::Tensor& learnt, std::int64_t head_dim) {
  if (learnt.size(1) == head_dim) return learnt;
  return at::cat({learnt, at::zeros({learnt.size(0), head_dim - learnt.size(1)}, learnt.options())}, 1);
}

at::Tensor fixed_slot_value(const AttentionVariant& variant, std::int64_t head_dim,
                            const at::TensorOptions& options) {
  at::Tensor value = at::zeros({1, head_dim}, options);
  if (variant.slot_value == SlotValue::first) value.narrow(1, 0, 1).fill_(variant.slot_value_norm);
  if (variant.slot_value == SlotValue::uniform)
    value.fill_(variant.slot_value_norm / std::sqrt(static_cast<double>(head_dim)));
  return value;
}

std::int64_t slot_columns(const AttentionVariant& variant) { return variant.slot == KeySlot::none ? 0 : 1; }

at::Tensor with_slot(const at::Tensor& rows, const at::Tensor& slot) {
  if (!slot.defined()) return rows;
  const std::int64_t heads = rows.size(-3);
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[shape.size() - 2] = 1;
  const at::Tensor own =
      slot.to(rows.scalar_type()).repeat_interleave(heads / slot.size(0), 0).unsqueeze(1).expand(shape);
  return at::cat({own, rows}, -2);
}

at::Tensor variant_scores(const VariantOfLayer& layer, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& query_positions, const at::Tensor& key_positions, bool causal) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor scores = at::matmul(features(layer, q), features(layer, k).transpose(-1, -2)) * scale;
  at::Tensor bias =
      position_bias(layer, q.size(-3), query_positions, key_positions, causal, scores.options());
  if (!bias.defined()) return scores;
  if (slot_columns(*layer.variant) > 0) bias = at::constant_pad_nd(bias, {1, 0});
  return scores + bias;
}

VariantRows variant_rows(const AttentionVariant& variant, const at::Tensor& scores,
                         const at::Tensor& hidden) {
  const bool sums_to_one = variant.normalised && variant.p == 1 && !is_signed(variant.similarity);
  at::Tensor rows;
  if (variant.similarity == Similarity::softmax) {
    rows = softmax_rows(variant, scores, hidden);
  } else {
    rows = similarities(variant.similarity, scores);
    if (hidden.defined()) rows = rows.masked_fill(hidden, 0.0);
    if (variant.normalised) rows = rows / divisors(variant, rows);
  }
  const at::Tensor shares =
      sums_to_one ? rows : rows.detach().abs() / (rows.detach().abs().sum(-1, true) + least_sum);
  return {variant.scale == 1 ? rows : rows * variant.scale, shares};
}

at::Tensor relative_buckets_of(const at::Tensor& query_positions, const at::Tensor& key_positions,
                               bool causal) {
  const at::Tensor distance = distances(query_positions, key_positions);
  if (causal) return buckets_of(distance.clamp_min(0), relative_buckets);
  return buckets_of(distance.abs(), relative_buckets / 2) +
         (distance < 0).to(at::kLong) * (relative_buckets / 2);
}

at::Tensor alibi_slopes(std::int64_t heads, const at::TensorOptions& options) {
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t h = 1; h <= power; ++h)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(power)));
  for (std::int64_t h = 1; static_cast<std::int64_t>(slopes.size()) < heads; h += 2)
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(h) / static_cast<double>(power)));
  return at::tensor(slopes, at::TensorOptions(at::kDouble))
      .to(options.device(), options.dtype().toScalarType());
}

at::Tensor sinusoid_table(std::int64_t positions, std::int64_t width) {
  const at::Tensor position = at::arange(positions, at::TensorOptions(at::kDouble)).unsqueeze(1);
  const at::Tensor index = at::arange(width / 2, at::TensorOptions(at::kDouble));
  const at::Tensor angle = position * at::exp(index * (-2 * std::log(10000.0) / static_cast<double>(width)));
  return at::cat({at::sin(angle), at::cos(angle)}, 1).to(at::kFloat);
}

}  // namespace sinkscope
