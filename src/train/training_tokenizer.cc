#include "train/training_tokenizer.h"

#include <sinkscope/error.h>

#include <array>

#include "base/files.h"
#include "base/json.h"
#include "base/new_folder.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::array tokenizer_files{"tokenizer.json",     "tokenizer_config.json",   "vocab.json",
                                     "merges.txt",         "special_tokens_map.json", "added_tokens.json",
                                     "chat_template.jinja"};

void copy_files(const TrainConfig& config, const fs::path& place) {
  NewFolder folder(place);
  for (const char* name : tokenizer_files)
    if (fs::exists(config.tokenizer / name)) fs::copy_file(config.tokenizer / name, folder.path() / name);
  if (config.chat_template)
    write_file_atomically(folder.path() / "chat_template.jinja", *config.chat_template);
  folder.finish();
}

// tokenizer_config.json says "eos_token": "TEXT" or {"content": "TEXT"}.
std::optional<std::int32_t> special_id(const Json& json, const char* key, const Tokenizer& tokenizer) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  const Json& value = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
  return value.is_string() ? tokenizer.id_of(value.get_ref<const std::string&>()) : std::nullopt;
}

bool has_template(const fs::path& folder, const Json& json) {
  return fs::exists(folder / "chat_template.jinja") || json.contains("chat_template");
}

}  // namespace

void TrainingTokenizer::complete(ModelConfig& model) const {
  model.embedding_rows = model.head_rows = tokenizer.size();
  model.bos_id = bos.value_or(eos);
  model.eos_ids = {eos};
  model.pad_id = eos;
  if (model.generation == Generation::masked) model.mask_id = mask;
}

TrainingTokenizer prepare_training_tokenizer(const TrainConfig& config, const fs::path& folder) {
  if (!fs::exists(folder)) copy_files(config, folder);
  TrainingTokenizer result{folder, Tokenizer::load(folder), {}, {}, 0, -1};
  const fs::path config_file = folder / "tokenizer_config.json";
  const Json json = fs::exists(config_file) ? read_json_file(config_file) : Json::object();
  const std::string where = (config.tokenizer / "tokenizer_config.json").string();
  if (!json.is_object()) throw Error("{} is no JSON object", where);
  result.bos = special_id(json, "bos_token", result.tokenizer);
  const auto eos = special_id(json, "eos_token", result.tokenizer);
  if (!eos)
    throw Error("{} names no eos_token of the tokenizer; training needs one behind every text", where);
  result.eos = *eos;
  auto mask = special_id(json, "mask_token", result.tokenizer);
  if (!mask) mask = result.tokenizer.id_of("<|mdm_mask|>");
  if (!mask && config.objective == Objective::masked_diffusion)
    throw Error("{} names no mask_token of the tokenizer, which masked diffusion needs", where);
  result.mask = mask.value_or(-1);
  if (has_template(folder, json))
    result.prompts = choose_chat_template(folder, family_name(config.model.family));
  return result;
}

}  // namespace sinkscope
