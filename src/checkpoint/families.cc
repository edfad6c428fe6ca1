#include "checkpoint/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <string_view>

#include "checkpoint/llama_config.h"
#include "checkpoint/message.h"
#include "checkpoint/olmo_config.h"

namespace sinkscope {
namespace {

struct FamilyRow {
  Family family;
  bool has_variants;  // of attention
  std::string_view name;
  std::string_view architecture;
  std::string_view model_type;
  std::string_view tensor;  // a name that no other row's models have; rows that share names: the first wins
  ConfigReader read;
};

// One row a name; the first row of a family has its usual one. Where only tensors tell, those that Llama
// shares with others mean Llama, since an old converter's Llama is the likeliest to have no config to speak
// of.
constexpr FamilyRow families[] = {
    {Family::llada, false, "llada", "LLaDAModelLM", "llada", olmo_embedding, read_olmo_config},
    {Family::mmada, false, "mmada", "MMadaModelLM", "mmada", olmo_embedding, read_olmo_config},
    {Family::llada_moe, false, "llada-moe", "LLaDAMoEModel", "llada_moe",
     "model.layers.0.mlp.experts.0.up_proj.weight", read_llada_moe_config},
    {Family::llada_moe, false, "llada-moe", "LLaDAMoEModelLM", "llada_moe", "", read_llada_moe_config},
    {Family::dream, false, "dream", "DreamModel", "Dream", "", read_dream_config},
    {Family::qwen3, false, "qwen3", "Qwen3ForCausalLM", "qwen3", "model.layers.0.self_attn.q_norm.weight",
     read_qwen3_config},
    {Family::qwen2, false, "qwen2", "Qwen2ForCausalLM", "qwen2", "model.layers.0.self_attn.q_proj.bias",
     read_qwen2_config},
    {Family::llama, false, "llama", "LlamaForCausalLM", "llama", "model.layers.0.self_attn.q_proj.weight",
     read_llama_config},
    {Family::mistral, false, "mistral", "MistralForCausalLM", "mistral", "", read_mistral_config},
    // as `sinkscope train` writes them: not LLaDA's or Llama's attention, so not their class
    {Family::llada, true, "llada", "SinkscopeLLaDAModel", "sinkscope-llada", "", read_olmo_config},
    {Family::llama, true, "llama", "SinkscopeLlamaForCausalLM", "sinkscope-llama", "",
     read_llama_variant_config},
};

const FamilyRow& row_of(Family family) {
  for (const FamilyRow& row : families)
    if (row.family == family) return row;
  throw Error("family {} is not in the table of families", static_cast<int>(family));
}

std::string supported() {
  std::vector<std::string> names;
  for (const FamilyRow& row : families) names.emplace_back(row.architecture);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Some copies of MMaDA name LLaDA's class, the image side's keys tell them; LLaDA-MoE has LLaDA's model_type.
const FamilyRow& refine(const FamilyRow& row, const ConfigSource& source) {
  if (row.family != Family::llada) return row;
  if (find_key(source, "num_experts") != nullptr && find_key(source, "hidden_size") != nullptr)
    return row_of(Family::llada_moe);
  const Json* model_type = find_key(source, "model_type");
  const bool says_mmada = model_type != nullptr && model_type->is_string() && *model_type == "mmada";
  return says_mmada || find_key(source, "codebook_size") != nullptr ? row_of(Family::mmada) : row;
}

RecognisedFamily recognised(const FamilyRow& row, std::string_view name) {
  return {row.family, std::string(name), row.read, row.has_variants};
}

// The entries of `architectures`; empty when the key is absent.
std::vector<std::string> read_architectures(const ConfigSource& source) {
  const Json* value = find_key(source, "architectures");
  if (value == nullptr) return {};
  if (!value->is_array())
    throw Error("{}: architectures is {}; it should be a list of class names", source.where, shown(*value));
  std::vector<std::string> names;
  for (const Json& name : *value) {
    if (!name.is_string())
      throw Error("{}: architectures holds {}; it should hold class names", source.where, shown(name));
    names.push_back(name.get_ref<const std::string&>());
  }
  return names;
}

RecognisedFamily by_architecture(const std::vector<std::string>& names, const ConfigSource& source) {
  for (const std::string& name : names)
    for (const FamilyRow& row : families)
      if (row.architecture == name) return recognised(refine(row, source), name);
  std::vector<std::string> found;
  for (const std::string& name : names) found.push_back(in_quotes(name));
  throw Error("{}: the architecture {} is not supported yet; supported are {}", source.where, listed(found),
              supported());
}

RecognisedFamily by_model_type(const Json& model_type, const ConfigSource& source) {
  if (!model_type.is_string())
    throw Error("{}: model_type is {}; it should be a string", source.where, shown(model_type));
  const auto& name = model_type.get_ref<const std::string&>();
  for (const FamilyRow& row : families)
    if (row.model_type == name) return recognised(refine(row, source), name);
  throw Error("{}: the model_type {} is not supported yet; supported architectures are {}", source.where,
              in_quotes(name), supported());
}

}  // namespace

std::string_view family_name(Family family) { return row_of(family).name; }

RecognisedFamily recognise_family(const ConfigSource& source, const TensorMap& tensors) {
  const std::vector<std::string> architectures = read_architectures(source);
  if (!architectures.empty()) return by_architecture(architectures, source);
  if (const Json* model_type = find_key(source, "model_type")) return by_model_type(*model_type, source);
  for (const FamilyRow& row : families)
    if (!row.tensor.empty() && tensors.contains(row.tensor)) {
      const FamilyRow& refined = refine(row, source);
      return recognised(refined, refined.architecture);
    }
  throw Error(
      "{} names neither architectures nor a model_type, and the tensors are those of no supported "
      "architecture; supported are {}",
      source.where, supported());
}

}  // namespace sinkscope
