#include "measure/sample_steps.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/recorded_run.h"

namespace sinkscope {
namespace {

// More than any row of attention can add up to, and far from where the sum of three becomes infinite.
constexpr float most_sum = 1e30F;

bool is_cached(const nlohmann::ordered_json& options) {
  if (!options.is_object() || !options.contains("cache")) return false;
  const auto& cache = options.at("cache");
  return cache.is_string() && cache != "none";
}

// Runs without what is measured here, told apart from broken ones.
void check_presence(const NpzFile& file, const std::string& where) {
  if (file.contains("column_sum")) return;
  if (file.contains("last_row_0"))
    throw Error(
        "{} is a sample of an autoregressive model, which has rows instead of column sums; measure "
        "reads runs of diffusion models",
        where);
  if (file.contains("states"))
    throw Error("{} has no array column_sum; record the run without --capture none", where);
}

}  // namespace

RunShape shape_of(const RunInfo& info) {
  return {info.model.layers, info.model.heads, info.model.mask_id, is_cached(info.options)};
}

SampleSteps::SampleSteps(const std::filesystem::path& file, const RunShape& run)
    : where_(file.string()), file_(file), run_(run) {
  check_presence(file_, where_);
  const NpzArray sums = file_.array("column_sum");
  if (sums.type != ArrayType::float16 && sums.type != ArrayType::float32)
    throw Error("{}: column_sum holds {}; float16 or float32 is right", where_, name_of(sums.type));
  RecordedStates states = read_states(file_, where_);
  const std::vector<std::int64_t> right{static_cast<std::int64_t>(states.steps), 3, run.layers, run.heads,
                                        static_cast<std::int64_t>(states.positions)};
  if (sums.shape != right)
    throw Error("{}: column_sum has the shape {}; states and run.json ask for [T,3,L,H,S] = {}", where_,
                shape_text(sums.shape), shape_text(right));
  shape_ = {states.steps, states.positions, static_cast<std::size_t>(run.layers),
            static_cast<std::size_t>(run.heads)};
  if (shape_.maps() == 0) throw Error("{}: column_sum has no layer or no head", where_);
  prompt_length_ = states.prompt_length;
  states_ = std::move(states.ids);
  const auto negative = std::find_if(states_.begin(), states_.end(), [](auto id) { return id < 0; });
  if (negative != states_.end())
    throw Error("{}: states holds the id {}; ids are at least 0", where_, *negative);
  has_effect_ = sinkscope::has_effect(
      file_, where_, {static_cast<std::int64_t>(shape_.steps), static_cast<std::int64_t>(shape_.positions)});
}

void SampleSteps::read(std::size_t t, Step& step) const {
  step.shape = shape_;
  step.number = t;
  const auto first = states_.begin() + static_cast<std::ptrdiff_t>(t * shape_.positions);
  step.ids.assign(first, first + static_cast<std::ptrdiff_t>(shape_.positions));
  step.status.clear();
  for (std::size_t j = 0; j < shape_.positions; ++j)
    step.status.push_back(run_.mask_id && step.ids[j] == *run_.mask_id ? TokenStatus::masked
                          : j < prompt_length_                         ? TokenStatus::prompt
                                                                       : TokenStatus::decoded);
  step.by_class = file_.floats("column_sum", t, 1);
  check_sums(step);
  count_queries(step);
}

void SampleSteps::check_sums(const Step& step) const {
  for (std::size_t i = 0; i < step.by_class.size(); ++i) {
    const float sum = step.by_class[i];
    if (sum >= 0 && sum <= most_sum) continue;
    const std::size_t map = i / shape_.positions;
    throw Error(
        "{}: column_sum is {} at step {}, class {}, layer {}, head {}, key {}; sums of attention lie "
        "between 0 and the number of queries",
        where_, sum, step.number, status_names[map / shape_.maps()], map % shape_.maps() / shape_.heads,
        map % shape_.heads, i % shape_.positions);
  }
}

void SampleSteps::count_queries(Step& step) const {
  step.queries = {};
  if (!run_.cached) {
    for (const TokenStatus status : step.status) ++step.queries[static_cast<std::size_t>(status)];
    return;
  }
  // Each query's row adds up to 1.
  for (std::size_t c = 0; c < status_count; ++c) {
    const std::span<const float> sums = step.columns_of(static_cast<TokenStatus>(c), 0);
    step.queries[c] = std::round(std::accumulate(sums.begin(), sums.end(), 0.0));
  }
}

}  // namespace sinkscope
