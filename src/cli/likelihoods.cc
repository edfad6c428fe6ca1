#include "cli/likelihoods.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "cli/json_lines.h"
#include "cli/progress.h"
#include "model/text_length.h"

namespace sinkscope {
namespace {

// White space at the end of the context belongs to the continuation: tokens begin with it.
void move_spaces(Pair& pair) {
  const std::size_t last = pair.context.find_last_not_of(" \t\n\r\v\f");
  const std::size_t kept = last == std::string::npos ? 0 : last + 1;
  pair.continuation = pair.context.substr(kept) + pair.continuation;
  pair.context.resize(kept);
}

std::int64_t longest_input(const LikelihoodSettings& settings, const ModelConfig& config) {
  constexpr std::int64_t llada_length = 4096, dream_length = 2048;
  if (settings.max_length) return *settings.max_length;
  if (config.generation == Generation::autoregressive)
    return config.max_positions - (config.attention.slot == KeySlot::sink_token ? 1 : 0);
  return config.generation == Generation::masked ? llada_length : dream_length;
}

// What the continuation adds to the ids of the context. LLaDA's tokenizer adds what its post-processor adds;
// the others' add nothing, and a begin token where --add-bos says so.
LikelihoodRequest encode_pair(Pair pair, const Tokenizer& tokenizer, const ModelConfig& config,
                              const LikelihoodSettings& settings) {
  move_spaces(pair);
  const bool masked = config.generation == Generation::masked;
  std::vector<std::int32_t> prefix = tokenizer.encode(pair.context, masked);
  std::vector<std::int32_t> whole = tokenizer.encode(pair.context + pair.continuation, masked);
  if (settings.add_bos || (config.causal() && prefix.empty())) {
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

std::string line_of(std::int64_t index, const LikelihoodRequest& request, const Likelihood& result) {
  nlohmann::ordered_json line{{"index", index},
                              {"loglikelihood", result.loglikelihood},
                              {"greedy", nullptr},
                              {"tokens", request.target.size()}};
  if (result.greedy) line["greedy"] = *result.greedy;
  return line.dump();
}

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

}  // namespace

std::vector<LikelihoodRequest> make_requests(const std::vector<Pair>& pairs, const Tokenizer& tokenizer,
                                             const ModelConfig& config, const LikelihoodSettings& settings) {
  std::vector<LikelihoodRequest> requests;
  for (const Pair& pair : pairs) {
    LikelihoodRequest request = encode_pair(pair, tokenizer, config, settings);
    fit_length(request, longest_input(settings, config), config, pair.where);
    check_text(config, std::ssize(request.prefix), std::ssize(request.target), pair.where + ": the context",
               pair.where + ": the pair");
    for (const std::vector<std::int32_t>* part : {&request.prefix, &request.target})
      for (const std::int32_t id : *part)
        if (id >= config.head_rows)
          throw Error("{}: token id {} is outside the model's {} ids", pair.where, id, config.head_rows);
    request.seed = static_cast<std::uint64_t>(settings.seed) + requests.size();
    requests.push_back(std::move(request));
  }
  return requests;
}

LikelihoodLines::LikelihoodLines(const std::string& file, bool resume,
                                 const std::vector<LikelihoodRequest>& requests)
    : file_(file) {
  if (file.empty()) return;
  if (std::filesystem::exists(file)) {
    if (!resume) throw UsageError("{} exists; give --resume to go on with it, or another --out", file);
    take_over(requests);
  }
  stream_.open(file, std::ios::app);
  if (!stream_) throw Error("cannot write {}", file);
}

void LikelihoodLines::write(const std::string& line) {
  if (file_.empty()) return print_line(line);
  if (!(stream_ << line << '\n') || !stream_.flush()) throw Error("cannot write {}", file_);
}

// The whole lines of an interrupted command for these pairs; a torn last one goes. A file of anything else
// is left as it is.
void LikelihoodLines::take_over(const std::vector<LikelihoodRequest>& requests) {
  const std::string content = read_file(file_);
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json line = Json::parse(content.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    const bool fits = line.is_object() && finished_ < requests.size() && line.contains("loglikelihood") &&
                      line.value("index", Json()) == finished_ &&
                      line.value("tokens", Json()) == requests[finished_].target.size();
    if (!fits)
      throw Error("{} line {} is not what score writes for line {} of these pairs; give another --out", file_,
                  finished_ + 1, finished_ + 1);
    ++finished_;
  }
  constexpr std::string_view beginning = "{\"index\"";
  const std::string_view torn = std::string_view(content).substr(begin);
  if (!torn.starts_with(beginning) && !beginning.starts_with(torn))
    throw Error("{} ends with something that score does not write; give another --out", file_);
  std::filesystem::resize_file(file_, begin);
}

void score_all(const Transformer& model, const std::vector<LikelihoodRequest>& requests,
               const LikelihoodSettings& settings, LikelihoodLines& lines, bool quiet) {
  Progress progress("scoring", quiet);
  const std::size_t at_once =
      model.config().causal() ? static_cast<std::size_t>(settings.likelihood.batch) : std::size_t{1};
  for (std::size_t first = lines.finished(); first < requests.size(); first += at_once) {
    const std::size_t count = std::min(at_once, requests.size() - first);
    const std::vector<Likelihood> results =
        score_some(model, std::span(requests).subspan(first, count), settings.likelihood);
    for (std::size_t i = 0; i < count; ++i)
      lines.write(line_of(static_cast<std::int64_t>(first + i), requests[first + i], results[i]));
    progress.show(static_cast<double>(first + count) / static_cast<double>(requests.size()),
                  fmt::format("pair {} of {}", first + count, requests.size()));
  }
}

}  // namespace sinkscope
