#include "cli/run_options.h"

#include <sinkscope/error.h>

#include <charconv>

namespace sinkscope {
namespace {

void declare_prompts(OptionTable& table, RunOptions& options) {
  table.repeatable("prompt", options.prompts.prompt, "a prompt; repeatable");
  table.option("prompts", options.prompts.prompts,
               "JSON Lines with `prompt` or `question`/`answer`, or plain text lines");
  table.option("dataset", options.prompts.dataset, "gsm8k, humaneval, mbpp or math500, with --data-dir");
  table.option("data-dir", options.prompts.data_dir, "folder that holds the data sets");
  table.repeatable("prompt-ids", options.prompts.prompt_ids,
                   "token ids \"1,2,3\", taken as they are; repeatable");
  table.option("num-samples", options.prompts.num_samples, "only the first N prompts [all]")->type_name("N");
  table.flag("raw", options.chat.raw, "no chat template");
  table.option("system", options.chat.system, "system message of the chat template");
  table
      .option("template", options.chat.name,
              "a built-in chat template instead of the model's own: " +
                  fmt::format("{}", fmt::join(chat_template_names(), ", ")))
      ->type_name("NAME");
  table.option("template-date", options.chat.date, "the day that chat templates are told which ask it")
      ->type_name("YYYY-MM-DD");
}

void declare_sampling(OptionTable& table, RunOptions& options) {
  LladaOptions& s = options.sampling;
  table.option("gen-len", s.gen_len, "tokens to generate; a multiple of --block-len");
  table.option("steps", s.steps, "denoising steps; a multiple of the number of blocks");
  table.option("block-len", s.block_len, "tokens of a block; blocks fill from left to right");
  table.option("temperature", s.temperature, "Gumbel noise; 0 takes the most likely token");
  table.option("cfg", s.cfg, "classifier-free guidance scale; 0 = off, else two rows a sample");
  table.choice("remasking", options.remasking, {"low_confidence", "random"},
               "what ranks the masked positions");
  table.choice("confidence", options.confidence, {"model", "f32", "f64"}, "dtype of the confidence softmax");
  table.flag("logits-eos-inf", s.logits_eos_inf, "never predict the end token");
  table.flag("confidence-eos-eot-inf", s.confidence_eos_eot_inf, "predicted end tokens have confidence 0");
  table.flag("forbid-mask", s.forbid_mask, "never predict the mask id");
  table.option("seed", options.seed, "sample i draws from its own generator, seeded with seed + i");
  table.option("batch", options.batch, "samples that run together; the results do not depend on it");
}

void declare_sinks(OptionTable& table, RunOptions& options) {
  InterventionOptions& sinks = options.sampling.sinks;
  table.option("sink-top-k", sinks.top_k, "mask the K largest sinks of each layer and head; 0 = off");
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
}

void declare_recording(OptionTable& table, RunOptions& options) {
  table.choice("capture", options.capture, {"none", "columns", "full"}, "what is recorded of the attention");
  table.option("maps", options.maps, "full maps of these heads, layers and heads from 0: L:H[,L:H...]");
  table.choice("array-dtype", options.array_dtype, {"f16", "f32"}, "of the attention arrays");
  table.option("out", options.out, "folder in which the run gets a folder of its own");
  table.option("run-dir", options.run_dir, "the run's folder itself");
  table.option("resume", options.resume, "go on with this interrupted run; all other options are its own");
}

}  // namespace

const std::vector<std::string>& unrecorded_run_options() {
  static const std::vector<std::string> names{"out", "run-dir", "resume", "threads", "quiet"};
  return names;
}

void declare_run_options(CLI::App& command, OptionTable& table, RunOptions& options) {
  command.add_option("MODEL", options.model, "directory, built-in name or Hugging Face id");
  declare_prompts(table, options);
  declare_sampling(table, options);
  declare_sinks(table, options);
  declare_recording(table, options);
  declare_model_options(table, options.common);
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

void resolve(RunOptions& options) {
  LladaOptions& s = options.sampling;
  s.remasking = options.remasking == "random" ? Remasking::random : Remasking::low_confidence;
  s.confidence = options.confidence == "model" ? ConfidencePrecision::model
                 : options.confidence == "f32" ? ConfidencePrecision::f32
                                               : ConfidencePrecision::f64;
  s.sinks.rule = parse_sink_rule(options.sink_rule);
  s.sinks.scale = parse_sink_scale(options.sink_scale);
  s.sinks.from = parse_sink_source(options.sink_from);
  s.capture = parse_capture(options.capture);
  s.maps = parse_maps(options.maps);
  if (options.seed < 0) throw UsageError("--seed is {}; it must be at least 0", options.seed);
  if (options.batch < 1 || options.batch > 65536)
    throw UsageError("--batch is {}; it must be from 1 to 65536", options.batch);
  validate(options.chat);
  if (!options.run_dir.empty() && !options.resume.empty())
    throw UsageError("--run-dir starts a run and --resume goes on with one; give one of them");
  // The end tokens are the checkpoint's and not known yet; every other rule needs no model.
  LladaOptions without_ends = s;
  without_ends.logits_eos_inf = without_ends.confidence_eos_eot_inf = false;
  validate(without_ends);
}

}  // namespace sinkscope
