// `sinkscope score`: log-likelihoods of continuations.
#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/likelihood.h>
#include <sinkscope/tokenizer.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "cli/special_ids.h"
#include "model/text_length.h"

namespace sinkscope {
namespace {

struct ScoreOptions {
  std::string model;
  std::string pairs;
  std::string out;
  bool resume = false;
  bool add_bos = false;
  std::optional<std::int64_t> max_length;
  std::int64_t seed = 1234;
  LikelihoodOptions likelihood;
  std::string nll_type = "mc";
  std::string log_type = "ftb";
  ModelOptions common;
};

struct Pair {
  std::string context;
  std::string continuation;
  std::string where;
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

// White space at the end of the context belongs to the continuation: tokens begin with it.
void move_spaces(Pair& pair) {
  const std::size_t last = pair.context.find_last_not_of(" \t\n\r\v\f");
  const std::size_t kept = last == std::string::npos ? 0 : last + 1;
  pair.continuation = pair.context.substr(kept) + pair.continuation;
  pair.context.resize(kept);
}

std::int64_t longest_input(const ScoreOptions& options, const ModelConfig& config) {
  constexpr std::int64_t llada_length = 4096, dream_length = 2048;
  if (options.max_length) return *options.max_length;
  if (config.generation == Generation::autoregressive)
    return config.max_positions - (config.attention.slot == KeySlot::sink_token ? 1 : 0);
  return config.generation == Generation::masked ? llada_length : dream_length;
}

// What the continuation adds to the ids of the context. LLaDA's tokenizer adds what its post-processor adds;
// the others' add nothing, and a begin token where --add-bos says so.
LikelihoodRequest encode_pair(Pair pair, const Tokenizer& tokenizer, const ModelConfig& config,
                              const ScoreOptions& options) {
  move_spaces(pair);
  const bool masked = config.generation == Generation::masked;
  std::vector<std::int32_t> prefix = tokenizer.encode(pair.context, masked);
  std::vector<std::int32_t> whole = tokenizer.encode(pair.context + pair.continuation, masked);
  if (options.add_bos || (config.causal() && prefix.empty())) {
    if (!config.bos_id)
      throw UsageError("{}: the context needs a begin token, and the checkpoint names no bos_token_id",
                       pair.where);
    prefix.insert(prefix.begin(), static_cast<std::int32_t>(*config.bos_id));
    whole.insert(whole.begin(), static_cast<std::int32_t>(*config.bos_id));
  }
  if (whole.size() < prefix.size())
    throw Error("{}: context and continuation together have fewer tokens than the context alone", pair.where);
  LikelihoodRequest request;
  request.target.assign(whole.begin() + static_cast<std::ptrdiff_t>(prefix.size()), whole.end());
  request.prefix.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
  // Dream was trained on texts with their end; it is always seen and never scored by `mc`.
  if (config.generation == Generation::shifted_masked) {
    if (config.eos_ids.empty()) throw Error("{}: Dream's likelihood needs an end token", pair.where);
    request.target.push_back(static_cast<std::int32_t>(config.eos_ids.front()));
  }
  if (request.target.empty())
    throw Error("{}: the continuation {}, so it has no likelihood", pair.where,
                pair.continuation.empty() ? "is empty"
                                          : "has no token of its own: it merges with the context's last one");
  return request;
}

// Dream's context and an autoregressive model's are cut on the left; LLaDA's wrapper refuses.
void fit_length(LikelihoodRequest& request, std::int64_t longest, const ModelConfig& config,
                const std::string& where) {
  const auto length = static_cast<std::int64_t>(request.prefix.size() + request.target.size());
  // An autoregressive model does not read the last token.
  const std::int64_t surplus = length - longest - (config.causal() ? 1 : 0);
  if (surplus <= 0) return;
  const bool cuts = config.generation != Generation::masked;
  if (!cuts || surplus >= static_cast<std::int64_t>(request.prefix.size()))
    throw Error("{}: context and continuation have {} tokens; at most {} fit (--max-length)", where, length,
                longest);
  request.prefix.erase(request.prefix.begin(), request.prefix.begin() + surplus);
}

std::vector<LikelihoodRequest> make_requests(const std::vector<Pair>& pairs, const Tokenizer& tokenizer,
                                             const ModelConfig& config, const ScoreOptions& options) {
  std::vector<LikelihoodRequest> requests;
  for (const Pair& pair : pairs) {
    LikelihoodRequest request = encode_pair(pair, tokenizer, config, options);
    fit_length(request, longest_input(options, config), config, pair.where);
    check_text(config, std::ssize(request.prefix), std::ssize(request.target), pair.where + ": the context",
               pair.where + ": the pair");
    for (const std::vector<std::int32_t>* part : {&request.prefix, &request.target})
      for (const std::int32_t id : *part)
        if (id >= config.head_rows)
          throw Error("{}: token id {} is outside the model's {} ids", pair.where, id, config.head_rows);
    request.seed = static_cast<std::uint64_t>(options.seed) + requests.size();
    requests.push_back(std::move(request));
  }
  return requests;
}

std::string line_of(std::int64_t index, const LikelihoodRequest& request, const Likelihood& result) {
  nlohmann::ordered_json line{{"index", index},
                              {"loglikelihood", result.loglikelihood},
                              {"greedy", nullptr},
                              {"tokens", request.target.size()}};
  if (result.greedy) line["greedy"] = *result.greedy;
  return line.dump();
}

// Lines go to a file, each of them whole, or to standard output.
class Output {
 public:
  Output(const std::string& file, bool resume, const std::vector<LikelihoodRequest>& requests) : file_(file) {
    if (file.empty()) return;
    if (std::filesystem::exists(file)) {
      if (!resume) throw UsageError("{} exists; give --resume to go on with it, or another --out", file);
      take_over(requests);
    }
    stream_.open(file, std::ios::app);
    if (!stream_) throw Error("cannot write {}", file);
  }
  std::size_t finished() const { return finished_; }
  void write(const std::string& line) {
    if (file_.empty()) return print_line(line);
    if (!(stream_ << line << '\n') || !stream_.flush()) throw Error("cannot write {}", file_);
  }

 private:
  // The whole lines of an interrupted command for these pairs; a torn last one goes. A file of anything else
  // is left as it is.
  void take_over(const std::vector<LikelihoodRequest>& requests) {
    const std::string content = read_file(file_);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const Json line = Json::parse(content.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
      const bool fits = line.is_object() && finished_ < requests.size() && line.contains("loglikelihood") &&
                        line.value("index", Json()) == finished_ &&
                        line.value("tokens", Json()) == requests[finished_].target.size();
      if (!fits)
        throw Error("{} line {} is not what score writes for line {} of these pairs; give another --out",
                    file_, finished_ + 1, finished_ + 1);
      ++finished_;
    }
    constexpr std::string_view beginning = "{\"index\"";
    const std::string_view torn = std::string_view(content).substr(begin);
    if (!torn.starts_with(beginning) && !beginning.starts_with(torn))
      throw Error("{} ends with something that score does not write; give another --out", file_);
    std::filesystem::resize_file(file_, begin);
  }

  std::string file_;
  std::ofstream stream_;
  std::size_t finished_ = 0;
};

std::vector<Likelihood> score_some(const Transformer& model, std::span<const LikelihoodRequest> requests,
                                   const LikelihoodOptions& options) {
  switch (model.config().generation) {
    case Generation::masked:
      return {llada_likelihood(model, requests.front(), options)};
    case Generation::shifted_masked:
      return {dream_likelihood(model, requests.front(), options)};
    case Generation::autoregressive:
      break;
  }
  return autoregressive_likelihoods(model, requests);
}

void score_all(const Transformer& model, const std::vector<LikelihoodRequest>& requests,
               const ScoreOptions& options, Output& output) {
  Progress progress("scoring", options.common.quiet);
  const std::size_t at_once =
      model.config().causal() ? static_cast<std::size_t>(options.likelihood.batch) : std::size_t{1};
  for (std::size_t first = output.finished(); first < requests.size(); first += at_once) {
    const std::size_t count = std::min(at_once, requests.size() - first);
    const std::vector<Likelihood> results =
        score_some(model, std::span(requests).subspan(first, count), options.likelihood);
    for (std::size_t i = 0; i < count; ++i)
      output.write(line_of(static_cast<std::int64_t>(first + i), requests[first + i], results[i]));
    progress.show(static_cast<double>(first + count) / static_cast<double>(requests.size()),
                  fmt::format("pair {} of {}", first + count, requests.size()));
  }
}

void score_command(ScoreOptions options) {
  if (options.resume && options.out.empty())
    throw UsageError("--resume goes on with a file; give it as --out");
  if (options.seed < 0) throw UsageError("--seed is {}; it must be at least 0", options.seed);
  if (options.max_length && *options.max_length < 2)
    throw UsageError("--max-length is {}; it must be at least 2", *options.max_length);
  LikelihoodOptions& likelihood = options.likelihood;
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
  const std::vector<LikelihoodRequest> requests = make_requests(pairs, tokenizer, config, options);
  Output output(options.out, options.resume, requests);
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  score_all(model, requests, options, output);
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
  table.option("mc-num", options->likelihood.mc_num,
               "diffusion: Monte Carlo samples of a pair; a multiple of --batch");
  table.option("batch", options->likelihood.batch, "rows of a forward pass: Monte Carlo samples, or pairs");
  table.option("cfg", options->likelihood.cfg, "LLaDA: classifier-free guidance scale; 0 = off");
  table.flag("check-greedy", options->likelihood.check_greedy,
             "LLaDA: also decode greedily; else `greedy` is null");
  table.choice("nll-type", options->nll_type, {"mc", "ar_ftb", "ar_btf"},
               "Dream: Monte Carlo, or the exact chain rule forwards or backwards");
  table.choice("log-type", options->log_type, {"ftb", "btf", "union"},
               "Dream, mc: score the continuation, the context, or both");
  table.option("eps", options->likelihood.eps, "Dream, mc: the smallest mask rate");
  table.flag("add-bos", options->add_bos, "put the begin token before every context");
  table.option("max-length", options->max_length,
               "longest input in tokens [LLaDA 4096, Dream 2048, others the model's]");
  table.option("seed", options->seed, "pair i draws from its own generator, seeded with seed + i");
  declare_model_options(table, options->common);
  command->footer(
      "Lines hold index, loglikelihood (nats), greedy and tokens. docs/methods.md says what is estimated.");
  command->callback([options] { score_command(*options); });
}

}  // namespace sinkscope
