// Interventions on keys of single queries: what they must leave as it is.
#include <omp.h>
#include <sinkscope/dream_sampler.h>
#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include <numeric>

#include "sampling/golden_steps.h"

namespace sinkscope {
namespace {

using testing::load;

std::vector<SampleRequest> three_prompts() {
  return {{{5, 6, 7, 8, 9, 10}, 1}, {{11}, 2}, {{3, 4, 3, 4, 3, 4, 3, 4, 3}, 3}};
}

LladaOptions small(const Transformer& model, SinkRank rank) {
  LladaOptions options;
  options.gen_len = 16;
  options.steps = 16;
  options.block_len = 8;
  options.mask_id = static_cast<std::int32_t>(*model.config().mask_id);
  options.sinks.top_k = 3;
  options.sinks.rank = rank;
  return options;
}

// Everything a step shows, as bytes.
struct Recorded {
  std::vector<std::vector<std::int32_t>> ids;  // of each sample
  std::vector<float> columns;
  std::vector<std::uint16_t> queries;
  bool operator==(const Recorded&) const = default;
};

Recorded record(const Transformer& model, const LladaOptions& options,
                std::span<const SampleRequest> requests) {
  Recorded recorded;
  const auto results = sample_llada(model, requests, options, [&](std::size_t, const StepRecord& step) {
    const at::Tensor columns = step.column_sum;
    recorded.columns.insert(recorded.columns.end(), columns.data_ptr<float>(),
                            columns.data_ptr<float>() + columns.numel());
    recorded.queries.insert(recorded.queries.end(), step.queries_without_key.begin(),
                            step.queries_without_key.end());
  });
  for (const SampleResult& result : results) recorded.ids.push_back(result.ids);
  return recorded;
}

TEST(RowRanking, NothingPickedIsNoInterventionToTheBit) {
  const Transformer model = load("llada-random");
  LladaOptions options = small(model, SinkRank::own);
  options.sinks.epsilon = 1e6;
  const Recorded nothing = record(model, options, three_prompts());
  EXPECT_EQ(std::accumulate(nothing.queries.begin(), nothing.queries.end(), 0), 0);
  options.sinks = {};
  const Recorded plain = record(model, options, three_prompts());
  EXPECT_TRUE(plain.queries.empty());
  EXPECT_EQ(nothing.ids, plain.ids);
  EXPECT_EQ(nothing.columns, plain.columns);
}

TEST(RowRanking, RowsOfABatchAreAsAlone) {
  const Transformer model = load("llada-random");
  for (const SinkRank rank : {SinkRank::own, SinkRank::last})
    for (const CacheMode cache : {CacheMode::none, CacheMode::prefix, CacheMode::dual})
      for (const SinkControl control : {SinkControl::none, SinkControl::random, SinkControl::bottom}) {
        LladaOptions options = small(model, rank);
        options.cache = cache;
        options.sinks.control = control;
        options.cfg = control == SinkControl::random ? 0.5 : 0;
        const Recorded together = record(model, options, three_prompts());
        const auto requests = three_prompts();
        for (std::size_t b = 0; b < requests.size(); ++b)
          EXPECT_EQ(record(model, options, std::span(requests).subspan(b, 1)).ids[0], together.ids[b]);
      }
}

TEST(RowRanking, BitsDoNotDependOnTheThreads) {
  const Transformer model = load("llada-random");
  LladaOptions options = small(model, SinkRank::own);
  options.sinks.control = SinkControl::random;
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Recorded one = record(model, options, three_prompts());
  omp_set_num_threads(3);
  const Recorded many = record(model, options, three_prompts());
  omp_set_num_threads(before);
  EXPECT_TRUE(one == many);
}

// Every query of every map loses at most three keys, and with rule topk exactly three.
TEST(RowRanking, EveryQueryLosesItsNumberOfKeys) {
  const Transformer model = load("llada-random");
  LladaOptions options = small(model, SinkRank::own);
  options.sinks.rule = SinkRule::topk;
  options.sinks.exclude_self = true;
  const std::vector<SampleRequest> requests{three_prompts()[0]};
  std::int64_t step = 0;
  sample_llada(model, requests, options, [&](std::size_t, const StepRecord& seen) {
    const std::int64_t queries = step++ == 0 ? 0 : 22, maps = model.config().layers * model.config().heads;
    for (std::int64_t m = 0; m < maps; ++m) {
      const auto counts = seen.queries_without_key.subspan(static_cast<std::size_t>(m * 22), 22);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 3 * queries);
      for (const std::uint16_t count : counts) EXPECT_LE(count, 21);  // never by the key's own query
    }
    EXPECT_TRUE(seen.removed.empty());
  });
  EXPECT_EQ(step, 16);
}

TEST(RowRanking, AControlIsAnotherIntervention) {
  const Transformer model = load("dream-random");
  DreamOptions options;
  options.gen_len = options.steps = 16;
  options.mask_id = static_cast<std::int32_t>(*model.config().mask_id);
  options.alg = DreamAlgorithm::entropy;
  options.sinks.top_k = 3;
  options.sinks.rank = SinkRank::own;
  std::vector<std::vector<std::uint16_t>> runs;
  for (const SinkControl control :
       {SinkControl::none, SinkControl::random, SinkControl::bottom, SinkControl::matched}) {
    options.sinks.control = control;
    std::vector<std::uint16_t> queries;
    sample_dream(model, three_prompts(), options, [&](std::size_t, const StepRecord& step) {
      if (step.step == 1)
        queries.insert(queries.end(), step.queries_without_key.begin(), step.queries_without_key.end());
    });
    runs.push_back(queries);
  }
  for (std::size_t a = 0; a < runs.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(runs[a], runs[b]);
  // Step 1 is the same up to there: as many keys go, but where a prompt of one token has no other of its
  // class.
  const auto lost = [&](std::size_t run) { return std::accumulate(runs[run].begin(), runs[run].end(), 0); };
  EXPECT_EQ(lost(1), lost(0));
  EXPECT_EQ(lost(2), lost(0));
  EXPECT_LE(lost(3), lost(0));
}

TEST(RowRanking, SamplesThatCannotBeCountedAreRefused) {
  InterventionOptions sinks;
  sinks.top_k = 1;
  sinks.rank = SinkRank::own;
  EXPECT_NO_THROW(check_row_counts(sinks, 65535));
  EXPECT_THROW(check_row_counts(sinks, 65536), UsageError);
  sinks.rank = SinkRank::columns;
  EXPECT_NO_THROW(check_row_counts(sinks, 65536));
}

}  // namespace
}  // namespace sinkscope
