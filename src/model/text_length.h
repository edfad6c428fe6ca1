// How long a text has to be, and may be, for a model.
#pragma once

#include <sinkscope/model_config.h>

#include <string_view>

namespace sinkscope {

/// Positions of a text: where they are learnt there is a last one. Throws UsageError, which begins with
/// `text`, where the text has more.
void check_positions(const ModelConfig& config, std::int64_t positions, std::string_view text);

/// The tokens of a prefix LM's prefix see each other, so that none of them is ever predicted: what is given
/// has to reach to its end. Throws UsageError, which begins with `text`, where it does not.
void check_given(const ModelConfig& config, std::int64_t tokens, std::string_view text);

/// Both, before anything is computed or written: `given` tokens, and `more` that are generated or scored
/// behind them. An autoregressive model does not read the last one.
void check_text(const ModelConfig& config, std::int64_t given, std::int64_t more, std::string_view given_text,
                std::string_view whole_text);

}  // namespace sinkscope
