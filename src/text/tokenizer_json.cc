// Reading tokenizer.json, the file of Hugging Face's fast tokenizers.
#include <sinkscope/error.h>

#include "base/foreign_content.h"
#include "text/tokenizer_parts.h"

namespace sinkscope {
namespace {

// Not parse_json: its check for repeated keys takes seconds on a vocabulary. Of repeated keys the last one
// counts here, as in the original.
Json parse_tokenizer_json(std::string_view text, const std::string& where) {
  if (const auto foreign = foreign_content(text)) throw Error("{} is {}", where, *foreign);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    throw Error("{} is not valid JSON ({})", where, error.what());
  }
}

void check_version(const JsonPlace& file) {
  const auto version = file.find("version");
  if (version && version->as_string() != "1.0")
    throw Error("{} is {}; only \"1.0\" is known", version->where, json_line(version->value));
}

}  // namespace

TokenizerParts read_tokenizer_json(std::string_view text, const std::string& where) {
  const Json json = parse_tokenizer_json(text, where);
  const JsonPlace file{json, where};
  if (!json.is_object()) throw Error("{} holds {}; an object would be right", where, json_type_name(json));
  check_version(file);
  TokenizerParts parts;
  if (const auto tokens = file.find("added_tokens")) parts.added_tokens = read_added_tokens(*tokens);
  if (const auto normalizer = file.find("normalizer")) parts.normalizer = read_normalizer(*normalizer);
  if (const auto pretokenizer = file.find("pre_tokenizer"))
    parts.pretokenizer = read_pretokenizer(*pretokenizer);
  if (const auto processor = file.find("post_processor"))
    parts.post_processor = read_post_processor(*processor);
  if (const auto decoder = file.find("decoder")) {
    parts.decoder = read_decoder(*decoder);
    parts.has_decoder = true;
  }
  parts.model = read_bpe_model(file.at("model"));
  return parts;
}

}  // namespace sinkscope
