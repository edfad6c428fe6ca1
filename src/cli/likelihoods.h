// Log-likelihoods of continuations, one JSON line a pair: what `score` prints and `eval` keeps.
#pragma once

#include <sinkscope/likelihood.h>
#include <sinkscope/tokenizer.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

/// A context, a continuation, and the words that name them in errors.
struct Pair {
  std::string context;
  std::string continuation;
  std::string where;
};

struct LikelihoodSettings {
  bool add_bos = false;
  std::optional<std::int64_t> max_length;  ///< tokens of an input; none: the family's
  std::int64_t seed = 1234;                ///< pair i draws from its own generator, seeded with seed + i
  LikelihoodOptions likelihood;
};

/// Throws Error naming the pair that has no token of its own, is too long or holds an id that the model has
/// not.
std::vector<LikelihoodRequest> make_requests(const std::vector<Pair>& pairs, const Tokenizer& tokenizer,
                                             const ModelConfig& config, const LikelihoodSettings& settings);

/// Where the lines go: a file, each of them whole, or standard output.
class LikelihoodLines {
 public:
  /// An empty name is standard output. With `resume` a file that is there must hold the first lines of these
  /// requests; without, it must not be there. Throws UsageError or Error naming it.
  LikelihoodLines(const std::string& file, bool resume, const std::vector<LikelihoodRequest>& requests);
  std::size_t finished() const { return finished_; }
  void write(const std::string& line);

 private:
  void take_over(const std::vector<LikelihoodRequest>& requests);

  std::string file_;
  std::ofstream stream_;
  std::size_t finished_ = 0;
};

/// {"index", "loglikelihood" (nats), "greedy", "tokens"} for each request that is not finished yet.
void score_all(const Transformer& model, const std::vector<LikelihoodRequest>& requests,
               const LikelihoodSettings& settings, LikelihoodLines& lines, bool quiet);

}  // namespace sinkscope
