// Log-likelihoods of continuations: what multiple-choice benchmarks compare.
#pragma once

#include <sinkscope/transformer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sinkscope {

/// How Dream's likelihood is taken.
enum class DreamLikelihood {
  mc,      ///< Monte Carlo over mask rates
  ar_ftb,  ///< exact chain rule, each token given those before it
  ar_btf,  ///< exact chain rule, each token given those behind it
};

/// Which tokens Dream's Monte Carlo estimate masks and scores.
enum class ScoredPart { target, prefix, both };

/// Names follow the command line.
struct LikelihoodOptions {
  std::int64_t mc_num = 128;  ///< Monte Carlo samples; a multiple of batch
  std::int64_t batch = 32;    ///< rows of a forward pass
  double cfg = 0;             ///< LLaDA: classifier-free guidance; 0 = off
  bool check_greedy = false;  ///< LLaDA: also whether greedy decoding gives the target
  DreamLikelihood nll_type = DreamLikelihood::mc;
  ScoredPart log_type = ScoredPart::target;
  double eps = 1e-3;  ///< Dream: the smallest mask rate
  std::int32_t mask_id = 0;
};

/// Throws UsageError naming the option.
void validate(const LikelihoodOptions& options, Generation generation);

struct LikelihoodRequest {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> target;  // not empty
  std::uint64_t seed = 0;            // of this request's own generator
};

struct Likelihood {
  double loglikelihood = 0;    // nats
  std::optional<bool> greedy;  // none: not looked at
  std::int64_t forward_passes = 0;
};

/// LLaDA's stratified estimate of -E_l[(L/l) sum over l masked tokens of CE], l uniform on 1..L: each of
/// mc_num / b rounds draws k = torch.randint(1, L + 1) and takes the counts round(linspace(k, k + (b - 1) L /
/// b, b)), wrapped into 1..L (rounded half to even), with that many target tokens masked in row r, chosen by
/// torch.randperm(L). Greedy: from a masked target L rounds open the surest token each.
Likelihood llada_likelihood(const Transformer& model, const LikelihoodRequest& request,
                            const LikelihoodOptions& options);

/// Dream's. mc: each of max(mc_num / b, 1) rounds draws u = torch.rand(1), takes t_r = (u + r / b) mod 1 and
/// p_r = (1 - eps) t_r + eps, masks each token where torch.rand(b, S) < p_r, never the first and the last,
/// and adds -sum CE / p_r / b; of log_type `both` the mean is divided by S. ar_ftb, ar_btf: one row for each
/// target token.
Likelihood dream_likelihood(const Transformer& model, const LikelihoodRequest& request,
                            const LikelihoodOptions& options);

/// Sum of ln p of each target token given all before it, in one ragged batch. A prefix must hold at least one
/// token, and a prefix LM's whole prefix.
std::vector<Likelihood> autoregressive_likelihoods(const Transformer& model,
                                                   std::span<const LikelihoodRequest> requests);

}  // namespace sinkscope
