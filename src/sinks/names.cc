// Names of rules, scales and sources as users write them.
#include <fmt/ranges.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <array>
#include <utility>

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

}  // namespace sinkscope
