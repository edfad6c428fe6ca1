// Sums as the numbers of measure.json.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "measure/sums.h"

namespace sinkscope {

/// rule, scale and the rule's own numbers; null where the rule has no such number.
nlohmann::ordered_json rule_of(const DetectionOptions& options);

/// How each measurement is pooled, a sentence by field.
nlohmann::ordered_json aggregation_texts();

/// One object of measure.json without its head, of one run or of several pooled. `text` gives the printable
/// name of a token, where known.
nlohmann::ordered_json result_of(const Sums& sums, bool pooled, const MeasureOptions& options,
                                 const std::function<std::optional<std::string>(std::int32_t)>& text);

}  // namespace sinkscope
