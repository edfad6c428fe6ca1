// Attention sinks: which keys of one attention map are sinks, and which of them an intervention removes.
//
// Everything here works on column sums C_j = sum_i A_ij of one (step, layer, head), A [S,S] being the
// post-softmax attention of query i to key j. Without a causal mask sum_j C_j = S, so uniform attention gives
// C_j = 1.
#pragma once

#include <sinkscope/key_action.h>
#include <sinkscope/number_ranges.h>
#include <sinkscope/row_keys.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace sinkscope {

/// What makes key j a sink; inequalities are strict. mean and std are those of C over the S positions, std
/// with the divisor S.
enum class SinkRule {
  paper,    ///< C_j > (sum_k C_k - C_j) / (S-1) + epsilon: more than the mean of the others by epsilon
  topk,     ///< the top_k keys with the largest C, whatever their size
  zscore,   ///< C_j > mean + z * std
  visible,  ///< C_j / (number of queries that see key j) > epsilon
  soft,     ///< sigmoid(steepness * (C_j - (mean + z * std))) > 1/2
};

/// The unit in which C_j and epsilon are compared.
enum class SinkScale {
  sum,      ///< C_j
  mean,     ///< C_j / S, never above 1
  percent,  ///< 100 * C_j / S
};

/// Which softmax of the previous step an intervention ranks by.
enum class SinkSource {
  raw,     ///< as it would be without the removed keys removed
  masked,  ///< as it was used: a removed key scores 0, so the choice alternates
};

/// How detect_sinks decides.
struct DetectionOptions {
  SinkRule rule = SinkRule::paper;
  SinkScale scale = SinkScale::sum;
  double epsilon = 3;    ///< rules paper (on `scale`) and visible; finite, >= 0
  int top_k = 1;         ///< rule topk; >= 0, more than S means all
  double z = 3;          ///< rules zscore and soft; finite, >= 0
  double steepness = 5;  ///< rule soft, the literature's a, per unit of `scale`; finite, > 0
  bool causal = false;   ///< rule visible: key k is seen by the S - k queries from it on, else by all S
};

/// What the literature uses with each rule: paper epsilon 3; topk 1; zscore z 3; visible epsilon 0.3; soft z
/// 2, steepness 5.
DetectionOptions default_detection(SinkRule rule);

/// Throws UsageError naming the value that is negative, not a number or out of range.
void validate_detection(const DetectionOptions& options);

/// The sinks of one (step, layer, head), ascending. `columns` is [S], in the sum scale whatever options.scale
/// says.
///
/// All rules but topk fire iff value_j - threshold_j > 1e-6 * max(value_j, threshold_j): rounding cannot make
/// a sink of uniform attention at any epsilon or z >= 0. A single key (S = 1) has no others to exceed and is
/// never a sink by rules that compare with them. Rule topk breaks ties towards the lower index. Throws Error
/// when a column sum is not finite.
std::vector<int> detect_sinks(std::span<const float> columns, const DetectionOptions& options);

/// [S]: key j is a sink at every threshold below its margin, and at none from it on. The threshold is epsilon
/// of rules paper and visible, z of rules zscore and soft. -infinity where no threshold makes it one. Throws
/// as detect_sinks, and UsageError for rule topk, which has no threshold.
std::vector<double> sink_margins(std::span<const float> columns, const DetectionOptions& options);

/// [S] of rule soft, in [0, 1]: sigmoid(steepness * (C_j - (mean + z * std))) on options.scale.
std::vector<double> soft_memberships(std::span<const float> columns, const DetectionOptions& options);

/// [S], alpha_k: the mean attention that key k gets from the queries that can see it; [0, 1].
std::vector<double> visible_means(std::span<const float> columns, bool causal);

/// What an intervention of equal budget removes in place of the keys that were picked: as many others.
enum class SinkControl {
  none,     ///< nothing: the picked keys go
  random,   ///< drawn uniformly
  bottom,   ///< those with the lowest C; ties: lower index
  matched,  ///< drawn uniformly among those of the same position class as each picked one
};

/// What a position holds at a step, in the order of QueryClass.
inline constexpr std::array<const char*, 3> position_class_names{"prompt", "decoded", "masked"};

/// By what keys are ranked, of the previous step.
enum class SinkRank {
  usual,    ///< columns in diffusion models, last in autoregressive ones
  columns,  ///< column sums over all queries; of an autoregressive model, over all queries so far
  last,     ///< the last query's row times the number of keys it sees; in diffusion the last position's
  visible,  ///< autoregressive: the mean attention of the queries that can see the key, times the number of
            ///< keys
  own,      ///< diffusion: each query loses keys of its own, by its own row times the number of keys
};

/// Masking sinks while generating. The names are those of the command line without `sink`.
struct InterventionOptions {
  int top_k = 0;       ///< `--sink-top-k`: keys removed per layer and head at most; 0 = no intervention
  double epsilon = 0;  ///< `--epsilon`: of rule paper, on `scale`; finite, >= 0
  SinkRule rule = SinkRule::paper;    ///< `--sink-rule`: paper, or topk: every position is a candidate
  SinkScale scale = SinkScale::sum;   ///< `--sink-scale`
  SinkSource from = SinkSource::raw;  ///< `--sink-from`: which column sums the caller hands in
  bool exclude_self = false;          ///< `--exclude-self`: rank and decide on C'_j = C_j - A_jj
  double mask_sink_ratio = 1;  ///< `--mask-sink-ratio`: the first ceil(ratio * count) are removed; 0 to 1
  SinkRank rank = SinkRank::usual;          ///< `--sink-rank`: which scores the caller hands in
  KeyChange change = {};                    ///< `--sink-action`, `--sink-eta`: what is done to the keys
  SinkControl control = SinkControl::none;  ///< `--sink-control`
  bool reset_at_block = false;              ///< `--sink-reset-at-block`: a block's first step masks nothing
  NumberRanges layers = {}, heads = {};     ///< `--sink-layers`, `--sink-heads`: where keys are masked
  NumberRanges steps = {};                  ///< `--sink-steps`, counted from 0
  std::uint8_t classes = 7;                 ///< `--sink-positions`: bit c = keys of class c may be masked
};

/// Throws UsageError naming the option when a value is negative, not a number or out of range.
void validate(const InterventionOptions& options);

/// What one (layer, head) is decided on, S keys.
struct KeyScores {
  std::span<const float>
      columns;  // [S] of the previous step on the sum scale, of the softmax options.from names
  std::span<const float> diagonal;             // [S] A_jj, may be empty unless exclude_self
  std::span<const std::uint8_t> classes = {};  // [S], in position_class_names; empty: all of one class
};

/// The first `wanted` of a random permutation of 0 .. count - 1.
using DrawIndices = std::function<std::vector<std::int64_t>(std::int64_t count, std::int64_t wanted)>;

struct ChosenKeys {
  std::vector<int> keys;
  int missing = 0;  // of a control: picked keys for which there was no other key
};

/// The keys to remove for one (layer, head), by rank: of the keys of the classes that may be masked those
/// that satisfy the rule are candidates; of them the top_k with the largest C (fewer candidates: only those;
/// ties: lower index); of these the first ceil(mask_sink_ratio * count). All S keys may be removed. Or the
/// control of equal budget: as many keys that were not picked, of those classes; random ones are the first of
/// a permutation of the eligible keys in ascending order, matched ones class by class in the order of the
/// classes. Throws Error when a value is not finite or the lengths do not match.
ChosenKeys choose_keys(const KeyScores& scores, const InterventionOptions& options,
                       const DrawIndices& draw = {});

/// All layers and heads of one step.
struct StepScores {
  std::span<const float> columns;         // [L,H,S]
  std::span<const float> diagonal;        // [L,H,S], or empty as above
  std::span<const std::uint8_t> classes;  // [S], or empty
  std::size_t positions = 0;              // S
  std::size_t heads = 1;                  // H
  std::int64_t step = 0;
};

struct RemovedKeys {
  std::vector<std::uint8_t> removed;  // [L,H,S], 1 = removed
  std::int64_t missing = 0;
};

/// choose_keys for every (layer, head) that the options name, in that order; nothing in other steps than they
/// name.
RemovedKeys choose_removed_keys(const StepScores& scores, const InterventionOptions& options,
                                const DrawIndices& draw = {});

/// With rank own: what is asked of the rows of a step, so that choose_row_keys can decide the next one.
/// `classes` of all keys in this step, in position_class_names; `listed` becomes 1 where a key may be
/// masked, is left empty where all may, and must outlive the request.
RowRequest row_request(const InterventionOptions& options, std::span<const std::uint8_t> classes,
                       std::vector<std::uint8_t>& listed);

/// The next number of a stream uniform on [0, 1).
using DrawUniform = std::function<double()>;

/// All layers and heads of the Q queries that one step computes, S keys.
struct StepRows {
  std::span<const std::int32_t> most;     // [L,H,Q,room] RowRequest::most, of the query's last own row
  std::span<const std::int32_t> least;    // [L,H,Q,2 room] RowRequest::least; empty unless control bottom
  std::span<const std::uint8_t> classes;  // [S] now
  std::size_t room = 0;
  std::size_t heads = 1;        // H
  std::size_t queries = 0;      // Q
  std::size_t first_query = 0;  // position of the first of them
  std::int64_t step = 0;
};

struct RemovedRowKeys {
  std::vector<std::int32_t> keys;      // [L,H,Q,room]
  std::vector<std::uint16_t> queries;  // [L,H,S]: how many of them lost the key
  std::int64_t missing = 0;
  std::int64_t count = 0;  // of removed (layer, head, query, key)
};

/// Of each list the keys whose class may be masked now, of these the first ceil(mask_sink_ratio * count); or
/// as many others, those of the classes that may be masked now but were not picked (and, with exclude_self,
/// are not the query itself): of control bottom the first of `least`; random: with the m others in ascending
/// order and u of draw(), the floor(u m)-th of them (from 0), which then is no longer one; matched: so in
/// each class, as many as were picked of it. Draws come in the order layer, head, query, class, and none is
/// made where no other is left. At most 65535 queries. Throws Error when lengths do not match or a key is no
/// key.
RemovedRowKeys choose_removed_row_keys(const StepRows& rows, const InterventionOptions& options,
                                       const DrawUniform& draw = {});

/// Names as options and run directories spell them: "paper", "sum", "raw", ...
std::string_view name_of(SinkRule rule);
std::string_view name_of(SinkScale scale);
std::string_view name_of(SinkSource source);
std::string_view name_of(SinkRank rank);
std::string_view name_of(SinkControl control);
std::string_view name_of(KeyAction action);

/// The reverse; an unknown name throws UsageError naming the option and the names it takes.
SinkRule parse_sink_rule(std::string_view name);
SinkScale parse_sink_scale(std::string_view name);
SinkSource parse_sink_source(std::string_view name);
SinkRank parse_sink_rank(std::string_view name);
SinkControl parse_sink_control(std::string_view name);
KeyAction parse_key_action(std::string_view name);

/// "prompt,masked" -> bits of InterventionOptions::classes. Throws UsageError.
std::uint8_t parse_sink_positions(std::string_view text);

}  // namespace sinkscope
