#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/round.h>
#include <sinkscope/error.h>
#include <sinkscope/likelihood.h>
#include <sinkscope/memory.h>

#include <algorithm>
#include <cmath>

#include "model/text_length.h"
#include "ops/vocabulary_head.h"
#include "sampling/token_distribution.h"

namespace sinkscope {
namespace {

// A token of a row whose likelihood is wanted, and the position whose logits predict it.
struct Scored {
  std::int64_t source = 0;
  std::int32_t token = 0;
};

// Of one row of logits.
struct TokenScore {
  double cross_entropy = 0;  // -ln p of the wanted token, nats
  std::int32_t best = 0;     // the likeliest id
  double best_probability = 0;
};

// A row of a batch: its ids and what is wanted of it, in the order of the positions.
struct ScoredRow {
  std::vector<std::int32_t> ids;
  std::vector<Scored> wanted;
};

TokenScore score(std::span<const float> logits, std::int32_t token) {
  std::vector<double> probability;
  softmax(logits, probability);
  const float max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(max));
  TokenScore result;
  result.cross_entropy = std::log(sum) - (static_cast<double>(logits[static_cast<std::size_t>(token)]) -
                                          static_cast<double>(max));
  result.best = largest_index(logits);
  result.best_probability = probability[static_cast<std::size_t>(result.best)];
  return result;
}

void add_row(const std::vector<std::int32_t>& ids, TokenBatch& batch) {
  batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
  batch.offsets.push_back(batch.tokens());
  batch.query_class.resize(batch.ids.size(), static_cast<std::uint8_t>(QueryClass::prompt));
}

// Some rows of logits at a time: all of them may be many times what the pass takes.
std::vector<TokenScore> score_hidden(const Transformer& model, const at::Tensor& hidden,
                                     const at::Tensor& unconditional, double guidance,
                                     std::span<const std::int32_t> tokens) {
  std::vector<TokenScore> scores;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t first = 0; first < count; first += rows_of_logits) {
    const std::int64_t rows = std::min(rows_of_logits, count - first);
    at::Tensor logits = model.logits_of(hidden.narrow(0, first, rows));
    if (unconditional.defined())
      logits = guided_logits(logits, model.logits_of(unconditional.narrow(0, first, rows)), guidance);
    logits = logits.to(at::kCPU, at::kFloat).contiguous();
    const auto width = static_cast<std::size_t>(logits.size(1));
    for (std::int64_t r = 0; r < rows; ++r)
      scores.push_back(
          score({logits[r].data_ptr<float>(), width}, tokens[static_cast<std::size_t>(first + r)]));
  }
  return scores;
}

// One pass over the rows, and with guidance over those rows with `hidden_prefix` tokens masked: scores row by
// row. Two wanted tokens of a row have different sources.
std::vector<TokenScore> score_rows(const Transformer& model, std::span<const ScoredRow> rows, double guidance,
                                   std::size_t hidden_prefix, std::int32_t mask_id) {
  TokenBatch batch;
  std::vector<std::int64_t> wanted;
  std::vector<std::int32_t> tokens;
  for (const bool unconditional : {false, true}) {
    if (unconditional && guidance == 0) break;
    for (const ScoredRow& row : rows) {
      for (const Scored& one : row.wanted) {
        wanted.push_back(batch.tokens() + one.source);
        if (!unconditional) tokens.push_back(one.token);
      }
      std::vector<std::int32_t> ids = row.ids;
      if (unconditional) std::fill_n(ids.begin(), hidden_prefix, mask_id);
      add_row(ids, batch);
    }
  }
  if (tokens.empty()) return {};
  const ForwardResult forwarded = model.forward({.tokens = batch, .wanted = wanted, .head = Head::none});
  const auto count = static_cast<std::int64_t>(tokens.size());
  return score_hidden(model, forwarded.hidden.narrow(0, 0, count),
                      guidance > 0 ? forwarded.hidden.narrow(0, count, count) : at::Tensor(), guidance,
                      tokens);
}

std::vector<std::int32_t> joined(const LikelihoodRequest& request) {
  std::vector<std::int32_t> ids = request.prefix;
  ids.insert(ids.end(), request.target.begin(), request.target.end());
  return ids;
}

at::Generator generator_of(const LikelihoodRequest& request) {
  return at::make_generator<at::CPUGeneratorImpl>(request.seed);
}

// x_r = ((round(linspace(k, k + (b - 1) L / b, b)) - 1) mod L) + 1
std::vector<std::int64_t> mask_counts(std::int64_t length, std::int64_t rows, at::Generator& generator) {
  const auto k =
      at::randint(1, length + 1, {1}, generator, at::TensorOptions(at::kLong)).item<std::int64_t>();
  const double end = static_cast<double>(k) + static_cast<double>(rows - 1) *
                                                  (static_cast<double>(length) / static_cast<double>(rows));
  const at::Tensor counts =
      at::round(at::linspace(static_cast<double>(k), end, rows, at::TensorOptions(at::kFloat)));
  std::vector<std::int64_t> result;
  for (std::int64_t r = 0; r < rows; ++r)
    result.push_back((static_cast<std::int64_t>(counts[r].item<float>()) - 1) % length + 1);
  return result;
}

// The target with `count` tokens masked: torch's `(arange(L) < count)[randperm(L)]`.
ScoredRow masked_row(const LikelihoodRequest& request, std::int64_t count, std::int32_t mask_id,
                     at::Generator& generator) {
  ScoredRow row{joined(request), {}};
  const auto length = static_cast<std::int64_t>(request.target.size());
  const at::Tensor order = at::randperm(length, generator, at::TensorOptions(at::kLong));
  for (std::int64_t i = 0; i < length; ++i) {
    if (order[i].item<std::int64_t>() >= count) continue;
    const std::size_t position = request.prefix.size() + static_cast<std::size_t>(i);
    row.wanted.push_back({static_cast<std::int64_t>(position), row.ids[position]});
    row.ids[position] = mask_id;
  }
  return row;
}

bool greedy_gives_target(const Transformer& model, const LikelihoodRequest& request,
                         const LikelihoodOptions& options, std::int64_t& passes) {
  ScoredRow row{joined(request), {}};
  std::fill(row.ids.begin() + static_cast<std::ptrdiff_t>(request.prefix.size()), row.ids.end(),
            options.mask_id);
  for (std::size_t round = 0; round < request.target.size(); ++round) {
    row.wanted.clear();
    for (std::size_t i = 0; i < row.ids.size(); ++i)
      if (row.ids[i] == options.mask_id) row.wanted.push_back({static_cast<std::int64_t>(i), 0});
    const std::vector<TokenScore> scores =
        score_rows(model, std::span(&row, 1), options.cfg, request.prefix.size(), options.mask_id);
    ++passes;
    const auto surest = std::max_element(
        scores.begin(), scores.end(),
        [](const TokenScore& a, const TokenScore& b) { return a.best_probability < b.best_probability; });
    if (surest == scores.end()) break;
    row.ids[static_cast<std::size_t>(row.wanted[static_cast<std::size_t>(surest - scores.begin())].source)] =
        surest->best;
  }
  return std::equal(request.target.begin(), request.target.end(),
                    row.ids.begin() + static_cast<std::ptrdiff_t>(request.prefix.size()));
}

// One round of Dream's estimate: sum of CE / p over all rows, divided by their number.
double dream_round(const Transformer& model, const LikelihoodRequest& request,
                   const LikelihoodOptions& options, at::Generator& generator) {
  const std::vector<std::int32_t> ids = joined(request);
  const auto length = static_cast<std::int64_t>(ids.size());
  const auto prefix = static_cast<std::int64_t>(request.prefix.size());
  const auto floats = at::TensorOptions(at::kFloat);
  const auto start = at::rand({1}, generator, floats).item<float>();
  const at::Tensor uniform = at::rand({options.batch, length}, generator, floats);
  std::vector<ScoredRow> rows;
  std::vector<double> rates;
  for (std::int64_t r = 0; r < options.batch; ++r) {
    const float t = std::fmod(start + static_cast<float>(r) / static_cast<float>(options.batch), 1.0F);
    const float p = static_cast<float>(1 - options.eps) * t + static_cast<float>(options.eps);
    ScoredRow row{ids, {}};
    const float* u = uniform.data_ptr<float>() + r * length;
    for (std::int64_t i = 1; i + 1 < length; ++i) {
      const bool scored =
          options.log_type == ScoredPart::both || (options.log_type == ScoredPart::target) == (i >= prefix);
      if (!scored || u[i] >= p) continue;
      row.wanted.push_back({i - 1, ids[static_cast<std::size_t>(i)]});
      row.ids[static_cast<std::size_t>(i)] = options.mask_id;
      rates.push_back(static_cast<double>(p));
    }
    rows.push_back(std::move(row));
  }
  const std::vector<TokenScore> scores = score_rows(model, rows, 0, 0, options.mask_id);
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) sum += scores[i].cross_entropy / rates[i];
  return sum / static_cast<double>(options.batch);
}

// Row r masks the target's tokens from r on, or up to r, and scores token r.
Likelihood dream_chain(const Transformer& model, const LikelihoodRequest& request,
                       const LikelihoodOptions& options) {
  const std::size_t prefix = request.prefix.size();
  Likelihood result;
  for (std::size_t first = 0; first < request.target.size();
       first += static_cast<std::size_t>(options.batch)) {
    std::vector<ScoredRow> rows;
    const std::size_t last = std::min(request.target.size(), first + static_cast<std::size_t>(options.batch));
    for (std::size_t r = first; r < last; ++r) {
      ScoredRow row{joined(request), {}};
      const std::size_t position = prefix + r;
      // The first token of all has no predictor and keeps its own logits.
      const std::size_t source = position == 0 ? 0 : position - 1;
      row.wanted.push_back({static_cast<std::int64_t>(source), row.ids[position]});
      const bool forwards = options.nll_type == DreamLikelihood::ar_ftb;
      std::fill(row.ids.begin() + static_cast<std::ptrdiff_t>(forwards ? position : prefix),
                forwards ? row.ids.end() : row.ids.begin() + static_cast<std::ptrdiff_t>(position + 1),
                options.mask_id);
      rows.push_back(std::move(row));
    }
    for (const TokenScore& one : score_rows(model, rows, 0, 0, options.mask_id))
      result.loglikelihood -= one.cross_entropy;
    ++result.forward_passes;
  }
  return result;
}

void require_target(const LikelihoodRequest& request) {
  if (request.target.empty()) throw UsageError("the continuation is empty: it has no likelihood");
}

}  // namespace

void validate(const LikelihoodOptions& options, Generation generation) {
  if (options.batch < 1 || options.batch > 65536)
    throw UsageError("--batch is {}; it must be from 1 to 65536", options.batch);
  if (options.mc_num < 1) throw UsageError("--mc-num is {}; it must be at least 1", options.mc_num);
  if (generation == Generation::masked && options.mc_num % options.batch != 0)
    throw UsageError("--mc-num {} is not a multiple of --batch {}, the rows of one stratified round",
                     options.mc_num, options.batch);
  if (!(options.cfg >= 0) || !std::isfinite(options.cfg))
    throw UsageError("--cfg is {}; it must be a number of at least 0", options.cfg);
  if (!(options.eps > 0 && options.eps < 1))
    throw UsageError("--eps is {}; it must be above 0 and below 1", options.eps);
  const bool masked = generation == Generation::masked;
  if (!masked && options.cfg > 0) throw UsageError("--cfg is for LLaDA and MMaDA");
  if (!masked && options.check_greedy && generation == Generation::shifted_masked)
    throw UsageError("--check-greedy is for LLaDA and MMaDA");
  const LikelihoodOptions usual;
  const bool dreams = options.nll_type != usual.nll_type || options.log_type != usual.log_type;
  if (dreams && generation != Generation::shifted_masked)
    throw UsageError("--nll-type and --log-type are for Dream");
}

Likelihood llada_likelihood(const Transformer& model, const LikelihoodRequest& request,
                            const LikelihoodOptions& options) {
  require_target(request);
  const auto length = static_cast<std::int64_t>(request.target.size());
  at::Generator generator = generator_of(request);
  Likelihood result;
  const std::int64_t rounds = options.mc_num / options.batch;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const std::vector<std::int64_t> counts = mask_counts(length, options.batch, generator);
    std::vector<ScoredRow> rows;
    for (const std::int64_t count : counts)
      rows.push_back(masked_row(request, count, options.mask_id, generator));
    const std::vector<TokenScore> scores =
        score_rows(model, rows, options.cfg, request.prefix.size(), options.mask_id);
    std::size_t next = 0;
    double sum = 0;
    for (const std::int64_t count : counts)
      for (std::int64_t i = 0; i < count; ++i)
        sum += scores[next++].cross_entropy * static_cast<double>(length) / static_cast<double>(count);
    result.loglikelihood -= sum / static_cast<double>(options.batch) / static_cast<double>(rounds);
    ++result.forward_passes;
  }
  if (options.check_greedy)
    result.greedy = greedy_gives_target(model, request, options, result.forward_passes);
  return result;
}

Likelihood dream_likelihood(const Transformer& model, const LikelihoodRequest& request,
                            const LikelihoodOptions& options) {
  require_target(request);
  if (options.nll_type != DreamLikelihood::mc) return dream_chain(model, request, options);
  at::Generator generator = generator_of(request);
  const std::int64_t rounds = std::max<std::int64_t>(options.mc_num / options.batch, 1);
  Likelihood result;
  for (std::int64_t round = 0; round < rounds; ++round) {
    result.loglikelihood -= dream_round(model, request, options, generator) / static_cast<double>(rounds);
    ++result.forward_passes;
  }
  if (options.log_type == ScoredPart::both)
    result.loglikelihood /= static_cast<double>(request.prefix.size() + request.target.size());
  return result;
}

std::vector<Likelihood> autoregressive_likelihoods(const Transformer& model,
                                                   std::span<const LikelihoodRequest> requests) {
  std::vector<ScoredRow> rows;
  for (const LikelihoodRequest& request : requests) {
    require_target(request);
    if (request.prefix.empty())
      throw UsageError(
          "the context is empty: an autoregressive model needs a token before the first one that it scores");
    check_given(model.config(), static_cast<std::int64_t>(request.prefix.size()), "a context");
    ScoredRow row{joined(request), {}};
    row.ids.pop_back();  // the last token predicts nothing that is asked for
    for (std::size_t i = 0; i < request.target.size(); ++i)
      row.wanted.push_back({static_cast<std::int64_t>(request.prefix.size() + i) - 1, request.target[i]});
    rows.push_back(std::move(row));
  }
  const std::vector<TokenScore> scores = score_rows(model, rows, 0, 0, 0);
  std::vector<Likelihood> results;
  std::size_t next = 0;
  for (const LikelihoodRequest& request : requests) {
    Likelihood result{0, true, 1};
    for (const std::int32_t token : request.target) {
      result.loglikelihood -= scores[next].cross_entropy;
      result.greedy = *result.greedy && scores[next].best == token;
      ++next;
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace sinkscope
