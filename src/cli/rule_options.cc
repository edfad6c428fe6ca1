#include "cli/rule_options.h"

#include <sinkscope/error.h>

namespace sinkscope {
namespace {

// An option of another rule would be read and never used.
template <typename Value>
void take(const char* option, const std::optional<Value>& given, Value& value, bool used,
          const RuleOptions& options, const char* rules) {
  if (!given) return;
  if (!used) throw UsageError("{} is of {}; --rule is {}", option, rules, options.rule);
  value = *given;
}

}  // namespace

void declare_rule_options(OptionTable& table, RuleOptions& options, const std::string& visible) {
  table.choice("rule", options.rule, {"paper", "zscore", "visible", "topk", "soft"},
               "what makes a key a sink (docs/methods.md)");
  table.choice(
      "scale", options.scale, {"sum", "mean", "percent"},
      "unit of C and of rule paper's epsilon: sum of a column, divided by the positions, in percent");
  table.option("epsilon", options.epsilon,
               "paper: how far above the mean of the others [3]; " + visible + ": mean attention [0.3]");
  table.option("z", options.z, "zscore [3], soft [2]: standard deviations above the mean");
  table.option("steepness", options.steepness, "soft: of the sigmoid, per unit of --scale [5]");
  table.option("top-k", options.top_k, "topk: the K largest of each map [1]");
}

DetectionOptions detection_of(const RuleOptions& options) {
  const SinkRule rule = parse_sink_rule(options.rule);
  DetectionOptions detection = default_detection(rule);
  detection.scale = parse_sink_scale(options.scale);
  take("--epsilon", options.epsilon, detection.epsilon, rule == SinkRule::paper || rule == SinkRule::visible,
       options, "the rules paper and visible");
  take("--z", options.z, detection.z, rule == SinkRule::zscore || rule == SinkRule::soft, options,
       "the rules zscore and soft");
  take("--steepness", options.steepness, detection.steepness, rule == SinkRule::soft, options,
       "the rule soft");
  take("--top-k", options.top_k, detection.top_k, rule == SinkRule::topk, options, "the rule topk");
  validate_detection(detection);
  return detection;
}

}  // namespace sinkscope
