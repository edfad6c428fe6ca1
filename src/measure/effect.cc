#include "measure/effect.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/quotient.h"
#include "measure/recorded_run.h"
#include "measure/statistics.h"
#include "record/effect_arrays.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr float no_prediction = 255;  // of effect_agrees

// Sums of float32 shares may exceed 1 by this.
constexpr float rounding = 1e-3F;

// The numbers of the first four arrays that may stand in them, in their order; the last's is a share.
bool may_be(std::size_t array, float value) {
  switch (array) {
    case 0:
      return value >= 0 && std::isfinite(value);
    case 1:
      return value == 0 || value == 1;
    case 4:
      return value >= 0 && value <= 1 + rounding;
    default:
      return value >= -1 - rounding && value <= 1 + rounding;
  }
}

// Ranks from 1; equal values share the mean of theirs. Doubled, so that they are whole numbers.
std::vector<std::int64_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<std::int64_t> ranks(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<std::int64_t>(first + 1 + last);
  }
  return ranks;
}

// Spearman's rho is Pearson's correlation of ranks.
std::optional<double> correlation(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const double mean = static_cast<double>(a.size()) + 1;  // of doubled ranks
  double both = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]) - mean, y = static_cast<double>(b[i]) - mean;
    both += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  if (square_a == 0 || square_b == 0) return std::nullopt;
  return both / std::sqrt(square_a * square_b);
}

void add(StepCorrelation& sums, const std::optional<double>& of_step, std::size_t predictions) {
  if (!of_step) return;
  sums.weighted += *of_step * static_cast<double>(predictions);
  sums.predictions += predictions;
  ++sums.steps;
}

void add(StepCorrelation& sums, const StepCorrelation& other) {
  sums.weighted += other.weighted;
  sums.predictions += other.predictions;
  sums.steps += other.steps;
}

OrderedJson part_json(const EffectPart& part) {
  const std::uint64_t n = part.predictions;
  return {{"predictions", n},
          {"mean_kl", quotient(part.kl, n)},
          {"agreement", quotient(part.agreeing, n)},
          {"mean_confidence_change", quotient(part.confidence, n)},
          {"mean_probability_change", quotient(part.probability, n)},
          {"mean_removed_mass", quotient(part.removed_mass, n)}};
}

OrderedJson correlation_json(const StepCorrelation& rho, const StepCorrelation& tau) {
  return {{"spearman", quotient(rho.weighted, rho.predictions)},
          {"kendall", quotient(tau.weighted, tau.predictions)},
          {"steps", rho.steps},
          {"predictions", rho.predictions}};
}

}  // namespace

bool has_effect(const NpzFile& file, const std::string& where, const std::vector<std::int64_t>& shape) {
  const auto there = std::count_if(effect_arrays.begin(), effect_arrays.end(),
                                   [&](const EffectArray& array) { return file.contains(array.name); });
  if (there == 0) return false;
  for (const EffectArray& array : effect_arrays) {
    if (!file.contains(array.name))
      throw Error("{} has {} of the {} arrays of --effect; {} is missing", where, there, effect_arrays.size(),
                  array.name);
    const NpzArray found = file.array(array.name);
    if (found.type != array.type)
      throw Error("{}: {} holds {}; {} is right", where, array.name, name_of(found.type),
                  name_of(array.type));
    if (found.shape != shape)
      throw Error("{}: {} has the shape {}; states asks for {}", where, array.name, shape_text(found.shape),
                  shape_text(shape));
  }
  return true;
}

std::vector<RecordedEffect> read_effect(const NpzFile& file, const std::string& where, std::size_t t) {
  std::array<std::vector<float>, effect_arrays.size()> values;
  for (std::size_t a = 0; a < effect_arrays.size(); ++a) values[a] = file.floats(effect_arrays[a].name, t, 1);
  std::vector<RecordedEffect> predictions;
  for (std::size_t i = 0; i < values[0].size(); ++i) {
    const bool predicted = values[1][i] != no_prediction;
    for (std::size_t a = 0; a < effect_arrays.size(); ++a) {
      const bool fine = predicted ? may_be(a, values[a][i]) : a == 1 || std::isnan(values[a][i]);
      if (!fine)
        throw Error("{}: {} is {} at step {}, position {}, which cannot be where effect_agrees is {}", where,
                    effect_arrays[a].name, values[a][i], t, i, values[1][i]);
    }
    if (predicted)
      predictions.push_back({values[0][i], values[1][i] == 1, values[2][i], values[3][i], values[4][i]});
  }
  return predictions;
}

void EffectPart::add(const RecordedEffect& effect) {
  ++predictions;
  agreeing += effect.agrees ? 1 : 0;
  kl += effect.kl;
  confidence += effect.confidence;
  probability += effect.probability;
  removed_mass += effect.removed_mass;
}

void EffectPart::add(const EffectPart& other) {
  predictions += other.predictions;
  agreeing += other.agreeing;
  kl += other.kl;
  confidence += other.confidence;
  probability += other.probability;
  removed_mass += other.removed_mass;
}

void add_step(EffectSums& sums, std::span<const RecordedEffect> predictions) {
  sums.recorded = true;
  const std::size_t count = predictions.size();
  std::vector<double> mass, confidence, probability;
  for (const RecordedEffect& effect : predictions) {
    mass.push_back(effect.removed_mass);
    confidence.push_back(effect.confidence);
    probability.push_back(effect.probability);
  }
  if (std::none_of(mass.begin(), mass.end(), [](double share) { return share > 0; })) return;
  ++sums.steps;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return mass[a] < mass[b]; });
  for (std::size_t r = 0; r < count; ++r) {
    sums.all.add(predictions[order[r]]);
    sums.quarters[effect_quarters * r / count].add(predictions[order[r]]);
  }
  const std::vector<std::int64_t> by_mass = doubled_ranks(mass);
  const auto correlate = [&](const std::vector<double>& change, StepCorrelation& rho, StepCorrelation& tau) {
    const std::vector<std::int64_t> by_change = doubled_ranks(change);
    add(rho, correlation(by_mass, by_change), count);
    add(tau, kendall_tau(by_mass, by_change), count);
  };
  correlate(confidence, sums.confidence_rho, sums.confidence_tau);
  correlate(probability, sums.probability_rho, sums.probability_tau);
}

void add(EffectSums& sums, const EffectSums& other) {
  sums.recorded = sums.recorded || other.recorded;
  sums.steps += other.steps;
  sums.all.add(other.all);
  for (std::size_t q = 0; q < effect_quarters; ++q) sums.quarters[q].add(other.quarters[q]);
  add(sums.confidence_rho, other.confidence_rho);
  add(sums.confidence_tau, other.confidence_tau);
  add(sums.probability_rho, other.probability_rho);
  add(sums.probability_tau, other.probability_tau);
}

OrderedJson effect_json(const EffectSums& sums) {
  if (!sums.recorded) return nullptr;
  OrderedJson json{{"steps", sums.steps}};
  json.update(part_json(sums.all));
  auto quarters = OrderedJson::array();
  for (const EffectPart& part : sums.quarters) quarters.push_back(part_json(part));
  json["quarters"] = std::move(quarters);
  json["mass_and_confidence"] = correlation_json(sums.confidence_rho, sums.confidence_tau);
  json["mass_and_probability"] = correlation_json(sums.probability_rho, sums.probability_tau);
  return json;
}

}  // namespace sinkscope
