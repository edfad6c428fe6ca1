// `sinkscope score`: log-likelihoods of continuations.
#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/likelihood.h>
#include <sinkscope/tokenizer.h>

#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/likelihoods.h"
#include "cli/model_options.h"
#include "cli/special_ids.h"

namespace sinkscope {
namespace {

struct ScoreOptions {
  std::string model;
  std::string pairs;
  std::string out;
  bool resume = false;
  LikelihoodSettings settings;
  std::string nll_type = "mc";
  std::string log_type = "ftb";
  ModelOptions common;
};

std::vector<Pair> read_pairs(const std::string& file) {
  std::vector<Pair> pairs;
  for_each_line(file, [&](const std::string& line, const std::string& where) {
    const Json value = parse_json(line, where);
    const auto text = [&](const char* name) {
      if (!value.is_object() || !value.contains(name) || !value[name].is_string())
        throw Error("{} must hold a JSON object with the strings `context` and `continuation`", where);
      return value[name].get<std::string>();
    };
    pairs.push_back({text("context"), text("continuation"), where});
  });
  if (pairs.empty()) throw Error("{} holds no pair", file);
  return pairs;
}

void score_command(ScoreOptions options) {
  if (options.resume && options.out.empty())
    throw UsageError("--resume goes on with a file; give it as --out");
  if (options.settings.seed < 0)
    throw UsageError("--seed is {}; it must be at least 0", options.settings.seed);
  if (options.settings.max_length && *options.settings.max_length < 2)
    throw UsageError("--max-length is {}; it must be at least 2", *options.settings.max_length);
  LikelihoodOptions& likelihood = options.settings.likelihood;
  likelihood.nll_type = options.nll_type == "ar_ftb"   ? DreamLikelihood::ar_ftb
                        : options.nll_type == "ar_btf" ? DreamLikelihood::ar_btf
                                                       : DreamLikelihood::mc;
  likelihood.log_type = options.log_type == "btf"     ? ScoredPart::prefix
                        : options.log_type == "union" ? ScoredPart::both
                                                      : ScoredPart::target;
  const std::vector<Pair> pairs = read_pairs(options.pairs);
  const Placement placement = place(options.common);
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(locate_model(options.model)));
  const ModelConfig& config = checkpoint->config();
  validate(likelihood, config.generation);
  check_weights(placement, config);
  const ComputeDtype dtype = choose_dtype(options.common, config, placement.device);
  if (!dtype.note.empty()) note(options.common.quiet, dtype.note);
  const Tokenizer tokenizer = Tokenizer::load(checkpoint->directory());
  if (!config.causal()) likelihood.mask_id = mask_id_of(*checkpoint, tokenizer);
  const std::vector<LikelihoodRequest> requests = make_requests(pairs, tokenizer, config, options.settings);
  LikelihoodLines lines(options.out, options.resume, requests);
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  score_all(model, requests, options.settings, lines, options.common.quiet);
}

}  // namespace

void add_score_command(CLI::App& program) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* command =
      program.add_subcommand("score", "Log-likelihoods of continuations, one JSON line a pair");
  OptionTable table(*command);
  command->add_option("MODEL", options->model, "directory, built-in name or Hugging Face id")->required();
  table.option("pairs", options->pairs, "JSON Lines with `context` and `continuation`; - is standard input")
      ->required();
  table.option("out", options->out, "file for the lines [standard output]");
  table.flag("resume", options->resume, "go on behind the lines that --out already holds");
  table.option("mc-num", options->settings.likelihood.mc_num,
               "diffusion: Monte Carlo samples of a pair; a multiple of --batch");
  table.option("batch", options->settings.likelihood.batch,
               "rows of a forward pass: Monte Carlo samples, or pairs");
  table.option("cfg", options->settings.likelihood.cfg, "LLaDA: classifier-free guidance scale; 0 = off");
  table.flag("check-greedy", options->settings.likelihood.check_greedy,
             "LLaDA: also decode greedily; else `greedy` is null");
  table.choice("nll-type", options->nll_type, {"mc", "ar_ftb", "ar_btf"},
               "Dream: Monte Carlo, or the exact chain rule forwards or backwards");
  table.choice("log-type", options->log_type, {"ftb", "btf", "union"},
               "Dream, mc: score the continuation, the context, or both");
  table.option("eps", options->settings.likelihood.eps, "Dream, mc: the smallest mask rate");
  table.flag("add-bos", options->settings.add_bos, "put the begin token before every context");
  table.option("max-length", options->settings.max_length,
               "longest input in tokens [LLaDA 4096, Dream 2048, others the model's]");
  table.option("seed", options->settings.seed, "pair i draws from its own generator, seeded with seed + i");
  declare_model_options(table, options->common);
  command->footer(
      "Lines hold index, loglikelihood (nats), greedy and tokens. docs/methods.md says what is estimated.");
  command->callback([options] { score_command(*options); });
}

}  // namespace sinkscope
