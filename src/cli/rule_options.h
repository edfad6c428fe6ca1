// The options of what makes a key a sink, of the commands that look at recorded runs.
#pragma once

#include <sinkscope/sinks.h>

#include <optional>
#include <string>

#include "cli/option_table.h"

namespace sinkscope {

struct RuleOptions {
  std::string rule = "paper";
  std::string scale = "sum";
  std::optional<double> epsilon;
  std::optional<double> z;
  std::optional<double> steepness;
  std::optional<int> top_k;
};

/// `visible`: whose mean attention --epsilon also is, for the help.
void declare_rule_options(OptionTable& table, RuleOptions& options, const std::string& visible = "visible");

/// Throws UsageError naming an option that the rule does not have, or whose number is out of range.
DetectionOptions detection_of(const RuleOptions& options);

}  // namespace sinkscope
