#include "cli/sampling_options.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>

namespace sinkscope {
namespace {

constexpr unsigned with_masked = 1;
constexpr unsigned with_shifted = 2;
constexpr unsigned with_autoregressive = 4;

unsigned bit_of(Generation generation) {
  return generation == Generation::masked           ? with_masked
         : generation == Generation::shifted_masked ? with_shifted
                                                    : with_autoregressive;
}

std::string_view models_of(unsigned kinds) {
  switch (kinds) {
    case with_masked:
      return "LLaDA and MMaDA";
    case with_shifted:
      return "Dream";
    case with_masked | with_shifted:
      return "diffusion models";
    case with_shifted | with_autoregressive:
      return "Dream and autoregressive models";
    default:
      return "autoregressive models";
  }
}

void fill(const SamplingOptions& options, const SpecialIds& ids, DenoisingOptions& to) {
  to.gen_len = options.gen_len;
  to.steps = options.steps;
  to.block_len = options.block_len;
  to.temperature = options.temperature;
  to.confidence = options.confidence == "model" ? ConfidencePrecision::model
                  : options.confidence == "f32" ? ConfidencePrecision::f32
                                                : ConfidencePrecision::f64;
  to.forbid_mask = options.forbid_mask;
  to.threshold = options.threshold;
  to.cache = options.cache == "prefix" ? CacheMode::prefix
             : options.cache == "dual" ? CacheMode::dual
                                       : CacheMode::none;
  to.mask_id = ids.mask.value_or(0);
  to.sinks = options.sinks;
  to.effect = options.effect;
  to.capture = parse_capture(options.capture);
  to.maps = parse_maps(options.maps);
}

void check_named(std::string_view option, const NumberRanges& named, std::int64_t count,
                 std::string_view what) {
  if (named.largest() >= count)
    throw UsageError("{} names {}; the model has {} {}, numbered from 0", option, named.largest(), count,
                     what);
}

DreamAlgorithm parse_algorithm(const std::string& name) {
  if (name == "maskgit_plus") return DreamAlgorithm::maskgit_plus;
  if (name == "topk_margin") return DreamAlgorithm::topk_margin;
  return name == "entropy" ? DreamAlgorithm::entropy : DreamAlgorithm::origin;
}

}  // namespace

void declare_sampling(OptionTable& table, SamplingOptions& s) {
  table.option("gen-len", s.gen_len, "tokens to generate; LLaDA: a multiple of --block-len");
  table.option("steps", s.steps, "denoising steps; LLaDA: a multiple of the number of blocks");
  table.option("block-len", s.block_len, "tokens of a block; blocks fill from left to right");
  declare_sampling_rules(table, s);
  table.flag("ignore-eos", s.ignore_eos, "autoregressive: do not stop at an end token");
  table.repeatable("stop", s.stop, "autoregressive: stop behind this text; repeatable");
}

void declare_sampling_rules(OptionTable& table, SamplingOptions& s) {
  table.option("temperature", s.temperature, "0 takes the most likely token");
  table.option("cfg", s.cfg, "LLaDA: classifier-free guidance scale; 0 = off, else two rows a sample");
  table.choice("remasking", s.remasking, {"low_confidence", "random"},
               "LLaDA: what ranks the masked positions");
  table.choice("alg", s.alg, {"origin", "maskgit_plus", "topk_margin", "entropy"},
               "Dream: what ranks the masked positions");
  table.option("alg-temp", s.alg_temp,
               "Dream: draw the positions from softmax(confidence / alg-temp); 0 = off");
  table.option("top-p", s.top_p,
               "Dream, autoregressive: keep the likeliest tokens of this probability; 1 = off");
  table.option("top-k", s.top_k, "Dream, autoregressive: keep the K likeliest tokens; 0 = off");
  table.option("eps", s.eps, "Dream: where the time steps end");
  table.choice("confidence", s.confidence, {"model", "f32", "f64"}, "dtype of the confidence softmax");
  table.choice("confidence-from", s.confidence_from, {"tempered", "untempered"},
               "Dream: confidence after or before the temperature");
  table.flag("logits-eos-inf", s.logits_eos_inf, "LLaDA: never predict the end token");
  table.flag("confidence-eos-eot-inf", s.confidence_eos_eot_inf,
             "LLaDA: predicted end tokens have confidence 0");
  table.flag("forbid-mask", s.forbid_mask, "never predict the mask id");
  table.option("threshold", s.threshold,
               "open every token at least this sure, one in any case [by schedule]");
  table.choice("cache", s.cache, {"none", "prefix", "dual"},
               "keep keys and values before the block, or around it; the result differs");
}

void declare_sink_choice(OptionTable& table, SamplingOptions& options) {
  table.option("sink-top-k", options.sinks.top_k, "mask the K largest sinks of each layer and head; 0 = off");
  table.choice(
      "sink-rank", options.sink_rank, {"usual", "columns", "last", "visible", "own"},
      "keys rank by column sums (usual in diffusion), the last query's row (usual in autoregressive "
      "models), the mean of the queries that see them (autoregressive), or for each query by its own "
      "row, which loses keys of its own (diffusion)");
  table.choice(
      "sink-control", options.sink_control, {"none", "random", "bottom", "matched"},
      "mask as many other keys in place of the picked ones: drawn, those with the least attention, or "
      "drawn from the same position class");
}

void declare_sinks(OptionTable& table, SamplingOptions& options) {
  InterventionOptions& sinks = options.sinks;
  table.option("epsilon", sinks.epsilon,
               "of rule paper, on --sink-scale: how far above the mean of the others");
  table.choice("sink-rule", options.sink_rule, {"paper", "topk"}, "which keys are candidates");
  table.choice("sink-scale", options.sink_scale, {"sum", "mean", "percent"},
               "scale of column sum and epsilon");
  table.choice("sink-from", options.sink_from, {"raw", "masked"},
               "previous step's columns without or with the masking");
  table.flag("exclude-self", sinks.exclude_self, "leave a token's attention to itself out of its column");
  table.option("mask-sink-ratio", sinks.mask_sink_ratio,
               "mask the first ceil(ratio * count) of the picked keys");
  table.choice(
      "sink-action", options.sink_action, {"remove", "scale", "value-zero", "value-mean"},
      "what masking does: no attention to the keys; their attention times --sink-eta, rows sum to 1 again; "
      "or attention as it is, to a value of zero, or to the mean of all");
  table.option("sink-eta", sinks.change.eta, "of --sink-action scale");
  table.flag("sink-reset-at-block", sinks.reset_at_block, "LLaDA: nothing is masked in a block's first step");
  table.option("sink-positions", options.sink_positions, "classes of keys that may be masked");
  table.option("sink-layers", options.sink_layers, "mask in these layers only: 0-3,7 [all]");
  table.option("sink-heads", options.sink_heads, "mask in these query heads only [all]");
  table.option("sink-steps", options.sink_steps,
               "mask at these steps (or generated tokens) only, from 0 [all]");
  table.flag(
      "effect", options.effect,
      "also record what the masking does to each prediction in the same state: KL divergence, agreement, "
      "confidence; costs a second forward pass a step");
}

void resolve(SamplingOptions& options) {
  options.sinks.rule = parse_sink_rule(options.sink_rule);
  options.sinks.scale = parse_sink_scale(options.sink_scale);
  options.sinks.from = parse_sink_source(options.sink_from);
  options.sinks.rank = parse_sink_rank(options.sink_rank);
  options.sinks.control = parse_sink_control(options.sink_control);
  options.sinks.change.action = parse_key_action(options.sink_action);
  if (options.sinks.change.eta != 1 && options.sinks.change.action != KeyAction::scale)
    throw UsageError("--sink-eta is for --sink-action scale");
  options.sinks.classes = parse_sink_positions(options.sink_positions);
  options.sinks.layers = parse_ranges(options.sink_layers, "--sink-layers");
  options.sinks.heads = parse_ranges(options.sink_heads, "--sink-heads");
  options.sinks.steps = parse_ranges(options.sink_steps, "--sink-steps");
  parse_maps(options.maps);
  for (const std::string& text : options.stop)
    if (text.empty()) throw UsageError("--stop is an empty text; it would stop at once");
}

void check_applicable(const SamplingOptions& options, const ModelConfig& config) {
  const SamplingOptions usual;
  const struct {
    std::string_view name;
    bool given;
    unsigned kinds;
  } rules[] = {
      {"cfg", options.cfg != usual.cfg, with_masked},
      {"remasking", options.remasking != usual.remasking, with_masked},
      {"logits-eos-inf", options.logits_eos_inf, with_masked},
      {"confidence-eos-eot-inf", options.confidence_eos_eot_inf, with_masked},
      {"alg", options.alg != usual.alg, with_shifted},
      {"alg-temp", options.alg_temp != usual.alg_temp, with_shifted},
      {"eps", options.eps != usual.eps, with_shifted},
      {"confidence-from", options.confidence_from != usual.confidence_from, with_shifted},
      {"top-p", options.top_p != usual.top_p, with_shifted | with_autoregressive},
      {"top-k", options.top_k != usual.top_k, with_shifted | with_autoregressive},
      {"steps", options.steps != usual.steps, with_masked | with_shifted},
      {"block-len", options.block_len != usual.block_len, with_masked | with_shifted},
      {"confidence", options.confidence != usual.confidence, with_masked | with_shifted},
      {"forbid-mask", options.forbid_mask, with_masked | with_shifted},
      {"threshold", options.threshold.has_value(), with_masked | with_shifted},
      {"cache", options.cache != usual.cache, with_masked | with_shifted},
      {"maps", !options.maps.empty(), with_masked | with_shifted},
      {"sink-reset-at-block", options.sinks.reset_at_block, with_masked},
      {"sink-rank visible", options.sink_rank == "visible", with_autoregressive},
      {"ignore-eos", options.ignore_eos, with_autoregressive},
      {"stop", !options.stop.empty(), with_autoregressive},
  };
  if (options.sink_rank == "own" && config.generation == Generation::autoregressive)
    throw UsageError(
        "--sink-rank own is for diffusion models; {} computes one new query a step, of which --sink-rank "
        "last "
        "takes the keys that the query before it attended",
        config.architecture);
  for (const auto& rule : rules)
    if (rule.given && (rule.kinds & bit_of(config.generation)) == 0)
      throw UsageError("--{} is for {}; {} is not one of them", rule.name, models_of(rule.kinds),
                       config.architecture);
  check_named("--sink-layers", options.sinks.layers, config.layers, "layers");
  check_named("--sink-heads", options.sinks.heads, config.heads, "query heads");
}

LladaOptions llada_options(const SamplingOptions& options, const SpecialIds& ids) {
  LladaOptions to;
  fill(options, ids, to);
  to.cfg = options.cfg;
  to.remasking = options.remasking == "random" ? Remasking::random : Remasking::low_confidence;
  to.logits_eos_inf = options.logits_eos_inf;
  to.confidence_eos_eot_inf = options.confidence_eos_eot_inf;
  if (!ids.ends.empty()) to.eos_id = ids.ends.front();
  to.eot_id = ids.end_of_turn;
  validate(to);
  return to;
}

DreamOptions dream_options(const SamplingOptions& options, const SpecialIds& ids) {
  DreamOptions to;
  fill(options, ids, to);
  to.alg = parse_algorithm(options.alg);
  to.alg_temp = options.alg_temp;
  to.top_p = options.top_p;
  to.top_k = options.top_k;
  to.eps = options.eps;
  to.confidence_from =
      options.confidence_from == "untempered" ? ConfidenceSource::untempered : ConfidenceSource::tempered;
  validate(to);
  return to;
}

AutoregressiveOptions autoregressive_options(const SamplingOptions& options, const SpecialIds& ids) {
  AutoregressiveOptions to;
  to.gen_len = options.gen_len;
  to.temperature = options.temperature;
  to.top_p = options.top_p;
  to.top_k = options.top_k;
  if (!options.ignore_eos) to.end_ids = ids.ends;
  to.sinks = options.sinks;
  to.effect = options.effect;
  to.capture = parse_capture(options.capture);
  validate(to);
  return to;
}

Capture parse_capture(const std::string& name) {
  if (name == "none") return Capture::none;
  return name == "full" ? Capture::full : Capture::columns;
}

std::vector<LayerHead> parse_maps(const std::string& text) {
  std::vector<LayerHead> maps;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    LayerHead map;
    const auto layer = std::from_chars(at, end, map.layer);
    const bool colon = layer.ec == std::errc() && layer.ptr != end && *layer.ptr == ':';
    const auto head = std::from_chars(colon ? layer.ptr + 1 : end, end, map.head);
    const bool complete =
        colon && head.ec == std::errc() && (head.ptr == end || (*head.ptr == ',' && head.ptr + 1 != end));
    if (!complete || map.layer < 0 || map.head < 0)
      throw UsageError("--maps \"{}\" is not of the form L:H[,L:H...], as in 0:3,11:0", text);
    if (std::find(maps.begin(), maps.end(), map) == maps.end()) maps.push_back(map);
    at = head.ptr == end ? end : head.ptr + 1;
  }
  return maps;
}

}  // namespace sinkscope
