// `sinkscope inspect`: what a checkpoint is, without loading it.
#include <fmt/format.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "checkpoint/attention_variant_config.h"
#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/option_table.h"
#include "cli/run_options.h"
#include "cli/threads.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t most_positions = 1 << 24;
constexpr std::int64_t most_batch = 65536;

struct InspectOptions {
  std::string model;
  std::int64_t positions = 512;
  std::int64_t batch = 1;
  std::string capture = "columns";
  std::optional<int> threads;
  bool json = false;
};

MemoryUse memory_use(const InspectOptions& options) {
  MemoryUse use;
  use.threads = options.threads.value_or(default_threads());
  use.positions = options.positions;
  use.sequences = options.batch;
  use.capture = parse_capture(options.capture);
  return use;
}

// What `run` would take on the CPU, in bytes, for every way to keep the weights.
OrderedJson describe_memory(const Checkpoint& checkpoint, const InspectOptions& options) {
  OrderedJson result{
      {"positions", options.positions}, {"batch", options.batch}, {"available", available_memory()}};
  MemoryUse use = memory_use(options);
  const auto add = [&](const char* name, at::ScalarType dtype, WeightFormat weights) {
    use.dtype = dtype;
    use.weights = weights;
    const MemoryEstimate estimate = estimate_memory(checkpoint, use);
    result[name] = {{"weights", estimate.weights},
                    {"working", estimate.total() - estimate.weights},
                    {"peak", expected_peak(estimate)}};
  };
  add("f32", at::kFloat, WeightFormat::native);
  add("bf16", at::kBFloat16, WeightFormat::native);
  add("int8", at::kBFloat16, WeightFormat::int8);
  return result;
}

struct Sizes {
  std::int64_t parameters = 0;
  std::int64_t stored_bytes = 0;
};

Sizes sizes_of(const Checkpoint& checkpoint) {
  Sizes sizes;
  for (const auto& [name, view] : checkpoint.tensors()) {
    sizes.parameters += view.element_count();
    sizes.stored_bytes += static_cast<std::int64_t>(view.bytes.size());
  }
  return sizes;
}

// A special token's id with its name in the tokenizer, where there is one.
OrderedJson special_token(std::optional<std::int64_t> id, const std::optional<Tokenizer>& tokenizer) {
  if (!id) return nullptr;
  OrderedJson result{{"id", *id}};
  if (tokenizer) result["text"] = tokenizer->label(static_cast<std::int32_t>(*id));
  return result;
}

std::string_view name_of(Generation generation) {
  switch (generation) {
    case Generation::masked:
      return "masked diffusion";
    case Generation::shifted_masked:
      return "masked diffusion, logits of the position before";
    case Generation::autoregressive:
      break;
  }
  return "autoregressive";
}

OrderedJson describe_rope_scaling(const ModelConfig& c) {
  if (c.rope_factor != 1) return {{"type", "linear"}, {"factor", c.rope_factor}};
  if (!c.llama3_scaling) return nullptr;
  return {{"type", "llama3"},
          {"factor", c.llama3_scaling->factor},
          {"low_freq_factor", c.llama3_scaling->low_frequency_factor},
          {"high_freq_factor", c.llama3_scaling->high_frequency_factor},
          {"original_max_position_embeddings", c.llama3_scaling->original_positions}};
}

OrderedJson describe_experts(const ModelConfig& c) {
  if (!c.experts) return nullptr;
  return {{"count", c.experts->count}, {"chosen", c.experts->chosen}, {"normalised", c.experts->normalised}};
}

OrderedJson describe_window(const ModelConfig& c) {
  if (c.sliding_window == 0) return nullptr;
  return {{"keys", c.sliding_window}, {"first_layer", c.first_windowed_layer}};
}

OrderedJson describe_variant(const ModelConfig& c) {
  if (c.attention == AttentionVariant{}) return nullptr;
  return attention_variant_json(c.attention);
}

OrderedJson describe(const Checkpoint& checkpoint, const InspectOptions& options) {
  const ModelConfig& c = checkpoint.config();
  const Sizes sizes = sizes_of(checkpoint);
  std::optional<Tokenizer> tokenizer;
  std::string tokenizer_note;
  try {
    tokenizer = Tokenizer::load(checkpoint.directory());
  } catch (const std::exception& error) {
    tokenizer_note = error.what();
  }
  OrderedJson result{{"directory", checkpoint.directory().string()},
                     {"family", family_name(c.family)},
                     {"architecture", c.architecture},
                     {"generation", name_of(c.generation)},
                     {"layers", c.layers},
                     {"heads", c.heads},
                     {"kv_heads", c.kv_heads},
                     {"head_dim", c.head_dim},
                     {"width", c.width},
                     {"mlp_width", c.mlp_width},
                     {"embedding_rows", c.embedding_rows},
                     {"head_rows", c.head_rows},
                     {"tied_head", c.tied_head},
                     {"experts", describe_experts(c)},
                     {"qkv_bias", c.qkv_bias},
                     {"qk_norm", c.qk_norm},
                     {"sliding_window", describe_window(c)},
                     {"attention_variant", describe_variant(c)},
                     {"rope_theta", c.rope_theta},
                     {"rope_scaling", describe_rope_scaling(c)},
                     {"norm_eps", c.norm_eps},
                     {"max_positions", c.max_positions},
                     {"dtype", dtype_name(c.weights_dtype)},
                     {"parameters", sizes.parameters},
                     {"weight_files", checkpoint.weight_files().size()},
                     {"stored_bytes", sizes.stored_bytes}};
  result["memory"] = describe_memory(checkpoint, options);
  result["special_tokens"] = {{"mask", special_token(c.mask_id, tokenizer)},
                              {"eos", special_token(c.eos_id(), tokenizer)},
                              {"pad", special_token(c.pad_id, tokenizer)},
                              {"bos", special_token(c.bos_id, tokenizer)}};
  result["tokenizer_size"] = tokenizer ? OrderedJson(tokenizer->size()) : OrderedJson(nullptr);
  if (!tokenizer) result["tokenizer_note"] = tokenizer_note;
  return result;
}

std::string special_text(const OrderedJson& token) {
  if (token.is_null()) return "none";
  return fmt::format("{}{}", token["id"].get<std::int64_t>(),
                     token.contains("text") ? " " + token["text"].get<std::string>() : "");
}

std::string memory_of(const OrderedJson& bytes) { return memory_text(bytes.get<std::int64_t>()); }

void print_memory(const OrderedJson& memory) {
  fmt::print("{:<16} at {} positions, batch {} ({} are free now):\n", "memory", memory["positions"].dump(),
             memory["batch"].dump(), memory_of(memory["available"]));
  for (const char* kind : {"f32", "bf16", "int8"})
    fmt::print("{:<16} {:<5} peak {} (weights {})\n", "", kind, memory_of(memory[kind]["peak"]),
               memory_of(memory[kind]["weights"]));
}

void print_text(const OrderedJson& d) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<16} {}\n", name, value);
  };
  const auto number = [&](const char* key) { return d[key].dump(); };
  line("model", d["directory"].get<std::string>());
  line("family",
       fmt::format("{} ({})", d["family"].get<std::string>(), d["architecture"].get<std::string>()));
  line("generation", d["generation"].get<std::string>());
  line("layers", number("layers"));
  line("heads",
       fmt::format("{} query, {} key/value, of {}", number("heads"), number("kv_heads"), number("head_dim")));
  line("attention",
       fmt::format("{}{}{}", d["qkv_bias"].get<bool>() ? "biases on q, k, v" : "no biases",
                   d["qk_norm"].get<bool>() ? ", norms of q and k" : "",
                   d["sliding_window"].is_null()
                       ? ""
                       : fmt::format(", {} keys seen from layer {} on", d["sliding_window"]["keys"].dump(),
                                     d["sliding_window"]["first_layer"].dump())));
  const OrderedJson& variant = d["attention_variant"];
  if (!variant.is_null()) line("variant", variant.dump());
  const OrderedJson& experts = d["experts"];
  line("width", fmt::format("{}, MLP {}{}", number("width"), number("mlp_width"),
                            experts.is_null() ? ""
                                              : fmt::format(", {} of {} experts", experts["chosen"].dump(),
                                                            experts["count"].dump())));
  line("vocabulary", fmt::format("{} ids read, {} predicted{}; tokenizer {}", number("embedding_rows"),
                                 number("head_rows"), d["tied_head"].get<bool>() ? " (tied head)" : "",
                                 d["tokenizer_size"].is_null() ? "none" : number("tokenizer_size")));
  const std::string rotation =
      !variant.is_null() && variant.contains("positions") ? "" : ", RoPE theta " + number("rope_theta");
  line("positions",
       fmt::format("{}{}{}", number("max_positions"), rotation,
                   d["rope_scaling"].is_null()
                       ? ""
                       : fmt::format(", {} scaling by {}", d["rope_scaling"]["type"].get<std::string>(),
                                     d["rope_scaling"]["factor"].dump())));
  line("parameters",
       fmt::format("{}, {} in {} file(s), {}", number("parameters"), d["dtype"].get<std::string>(),
                   number("weight_files"), memory_of(d["stored_bytes"])));
  print_memory(d["memory"]);
  for (const auto& [name, token] : d["special_tokens"].items()) line(name + " token", special_text(token));
  if (d.contains("tokenizer_note")) line("note", d["tokenizer_note"].get<std::string>());
}

void check_estimate_options(const InspectOptions& options) {
  if (options.positions < 1 || options.positions > most_positions)
    throw UsageError("--positions is {}; it must be from 1 to {}", options.positions, most_positions);
  if (options.batch < 1 || options.batch > most_batch)
    throw UsageError("--batch is {}; it must be from 1 to {}", options.batch, most_batch);
  if (options.threads && (*options.threads < 1 || *options.threads > most_threads))
    throw UsageError("--threads is {}; it must be from 1 to {}", *options.threads, most_threads);
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      program.add_subcommand("inspect", "What a checkpoint is: family, shapes, memory, special tokens");
  OptionTable table(*command);
  command->add_option("MODEL", options->model, "directory, built-in name or Hugging Face id")->required();
  table.option("positions", options->positions,
               "of the memory estimate: prompt and generated tokens together");
  table.option("batch", options->batch, "of the memory estimate: samples that run together");
  table.choice("capture", options->capture, {"none", "columns", "full"}, "of the memory estimate");
  table.option("threads", options->threads, "of the memory estimate [physical cores]")->type_name("N");
  table.flag("json", options->json, "one JSON object");
  command->callback([options] {
    check_estimate_options(*options);
    const OrderedJson description = describe(Checkpoint::open(locate_model(options->model)), *options);
    if (options->json)
      fmt::print("{}\n", json_line(description));
    else
      print_text(description);
  });
  command->footer("A checkpoint that is broken or not supported is refused, with the reason.");
}

}  // namespace sinkscope
