#include "train/training_tokenizer.h"

#include <sinkscope/error.h>

#include <array>
#include <map>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "text/special_tokens.h"

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

bool has_template(const fs::path& folder) {
  if (fs::exists(folder / "chat_template.jinja")) return true;
  const fs::path file = folder / "tokenizer_config.json";
  return fs::exists(file) && read_json_file(file).contains("chat_template");
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
  const std::map<std::string, std::string> special = special_tokens_of(folder);
  const auto id_of = [&](const char* name) {
    const auto token = special.find(name);
    return token == special.end() ? std::nullopt : result.tokenizer.id_of(token->second);
  };
  const std::string where = (config.tokenizer / "tokenizer_config.json").string();
  result.bos = id_of("bos_token");
  const auto eos = id_of("eos_token");
  if (!eos)
    throw Error("{} names no eos_token of the tokenizer; training needs one behind every text", where);
  result.eos = *eos;
  auto mask = id_of("mask_token");
  if (!mask) mask = result.tokenizer.id_of("<|mdm_mask|>");
  if (!mask && config.objective == Objective::masked_diffusion)
    throw Error("{} names no mask_token of the tokenizer, which masked diffusion needs", where);
  result.mask = mask.value_or(-1);
  if (has_template(folder)) result.prompts = choose_chat_template(folder, family_name(config.model.family));
  return result;
}

}  // namespace sinkscope
