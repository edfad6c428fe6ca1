// Names of rules, scales and sources as users write them.
#include <fmt/ranges.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text_parts.h"

namespace sinkscope {
namespace {

template <typename Value, std::size_t N>
using NameTable = std::array<std::pair<Value, std::string_view>, N>;

constexpr NameTable<SinkRule, 5> rule_names{{{SinkRule::paper, "paper"},
                                             {SinkRule::topk, "topk"},
                                             {SinkRule::zscore, "zscore"},
                                             {SinkRule::visible, "visible"},
                                             {SinkRule::soft, "soft"}}};
constexpr NameTable<SinkScale, 3> scale_names{
    {{SinkScale::sum, "sum"}, {SinkScale::mean, "mean"}, {SinkScale::percent, "percent"}}};
constexpr NameTable<SinkSource, 2> source_names{{{SinkSource::raw, "raw"}, {SinkSource::masked, "masked"}}};

constexpr NameTable<SinkRank, 5> rank_names{{{SinkRank::usual, "usual"},
                                             {SinkRank::columns, "columns"},
                                             {SinkRank::last, "last"},
                                             {SinkRank::visible, "visible"},
                                             {SinkRank::own, "own"}}};
constexpr NameTable<SinkControl, 4> control_names{{{SinkControl::none, "none"},
                                                   {SinkControl::random, "random"},
                                                   {SinkControl::bottom, "bottom"},
                                                   {SinkControl::matched, "matched"}}};
constexpr NameTable<KeyAction, 4> action_names{{{KeyAction::remove, "remove"},
                                                {KeyAction::scale, "scale"},
                                                {KeyAction::value_zero, "value-zero"},
                                                {KeyAction::value_mean, "value-mean"}}};

template <typename Value, std::size_t N>
std::string_view find_name(const NameTable<Value, N>& table, Value wanted) {
  for (const auto& [value, name] : table)
    if (value == wanted) return name;
  throw Error("{} is no value that has a name", static_cast<int>(wanted));
}

template <typename Value, std::size_t N>
Value find_value(const NameTable<Value, N>& table, std::string_view wanted, std::string_view option) {
  std::vector<std::string_view> known;
  for (const auto& [value, name] : table) {
    if (name == wanted) return value;
    known.push_back(name);
  }
  throw UsageError("{} takes {}, not '{}'", option, fmt::join(known, " or "), wanted);
}

}  // namespace

std::string_view name_of(SinkRule rule) { return find_name(rule_names, rule); }
std::string_view name_of(SinkScale scale) { return find_name(scale_names, scale); }
std::string_view name_of(SinkSource source) { return find_name(source_names, source); }

SinkRule parse_sink_rule(std::string_view name) { return find_value(rule_names, name, "--sink-rule"); }
SinkScale parse_sink_scale(std::string_view name) { return find_value(scale_names, name, "--sink-scale"); }
SinkSource parse_sink_source(std::string_view name) { return find_value(source_names, name, "--sink-from"); }
std::string_view name_of(SinkRank rank) { return find_name(rank_names, rank); }
std::string_view name_of(SinkControl control) { return find_name(control_names, control); }
SinkRank parse_sink_rank(std::string_view name) { return find_value(rank_names, name, "--sink-rank"); }
SinkControl parse_sink_control(std::string_view name) {
  return find_value(control_names, name, "--sink-control");
}

std::string_view name_of(KeyAction action) { return find_name(action_names, action); }
KeyAction parse_key_action(std::string_view name) { return find_value(action_names, name, "--sink-action"); }

std::uint8_t parse_sink_positions(std::string_view text) {
  std::uint8_t classes = 0;
  for (const std::string_view name : comma_parts(text)) {
    const auto found = std::find(position_class_names.begin(), position_class_names.end(), name);
    if (found == position_class_names.end())
      throw UsageError("--sink-positions \"{}\" should be some of prompt, decoded, masked, joined by commas",
                       text);
    classes |= static_cast<std::uint8_t>(1 << (found - position_class_names.begin()));
  }
  return classes;
}

}  // namespace sinkscope
