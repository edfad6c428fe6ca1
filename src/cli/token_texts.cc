#include "cli/token_texts.h"

#include <fmt/format.h>
#include <sinkscope/checkpoint.h>

#include <exception>
#include <utility>

#include "cli/model_options.h"

namespace sinkscope {

TokenTexts::TokenTexts(std::string tokenizer, bool quiet) : tokenizer_(std::move(tokenizer)), quiet_(quiet) {
  if (!tokenizer_.empty()) loaded_.emplace(tokenizer_, Tokenizer::load(locate_model(tokenizer_)));
}

std::optional<std::string> TokenTexts::text(const RunInfo& run, std::int32_t id) {
  const std::optional<Tokenizer>& tokenizer = tokenizer_of(run);
  return tokenizer ? std::optional(tokenizer->label(id)) : std::nullopt;
}

const std::optional<Tokenizer>& TokenTexts::tokenizer_of(const RunInfo& run) {
  std::string model = tokenizer_.empty() ? run.model.name : tokenizer_;
  if (tokenizer_.empty() && run.options.is_object() && run.options.contains("model") &&
      run.options.at("model").is_string())
    model = run.options.at("model").get<std::string>();
  const auto [place, fresh] = loaded_.try_emplace(model);
  if (!fresh) return place->second;
  try {
    place->second = Tokenizer::load(locate_model(model));
  } catch (const std::exception& error) {
    note(quiet_, fmt::format("tokens have no texts, --tokenizer would give them: {}", error.what()));
  }
  return place->second;
}

}  // namespace sinkscope
