#include "model/text_length.h"

#include <sinkscope/error.h>

namespace sinkscope {

void check_positions(const ModelConfig& config, std::int64_t positions, std::string_view text) {
  if (config.attention.positions != PositionEncoding::learned) return;
  // A sink token stands in front of the text.
  const std::int64_t most = config.max_positions - (config.attention.slot == KeySlot::sink_token ? 1 : 0);
  if (positions > most)
    throw UsageError("{} has {} positions, the model has learnt {}", text, positions, most);
}

void check_given(const ModelConfig& config, std::int64_t tokens, std::string_view text) {
  if (tokens < config.attention.prefix)
    throw UsageError(
        "{} has {} tokens: the first {} of this model see each other and are not predicted, so at least {} "
        "have to be given",
        text, tokens, config.attention.prefix, config.attention.prefix);
}

void check_text(const ModelConfig& config, std::int64_t given, std::int64_t more, std::string_view given_text,
                std::string_view whole_text) {
  check_given(config, given, given_text);
  check_positions(config, given + more - (config.causal() ? 1 : 0), whole_text);
}

}  // namespace sinkscope
