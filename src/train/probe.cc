#include "train/probe.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <numeric>

#include "base/random_bits.h"
#include "ops/attention.h"

namespace sinkscope {
namespace {

constexpr double sink_epsilon_of_means = 0.3;     // the paper's, of alpha
constexpr std::size_t most_first_positions = 10;  // of which the paper's evaluation gives rates

// Sums over (sample, layer, head), turned into means at the end.
struct Counts {
  double maps = 0, maps_with_sink = 0, alpha_first = 0, largest = 0, keys = 0, sinks = 0, masked_sinks = 0;
  double alpha_slot = 0, maps_with_slot_sink = 0;
  std::vector<double> first_sinks;  // of each of the first positions: maps in which it is one
  std::vector<double> massive;      // [L], sums over samples
};

class Prober {
 public:
  Prober(const TrainableModel& model, const ProbeTexts& texts, std::vector<std::int32_t> ids,
         std::int32_t mask_id)
      : model_(model), texts_(texts), ids_(std::move(ids)), mask_id_(mask_id) {}

  void look(const LayerStates& states);
  const Counts& counts() const { return counts_; }

 private:
  void count_norms(const at::Tensor& entering);
  void count_map(std::int64_t row, std::span<const float> columns);

  const TrainableModel& model_;
  const ProbeTexts& texts_;
  std::vector<std::int32_t> ids_;
  std::int32_t mask_id_;
  Counts counts_;
};

void Prober::count_norms(const at::Tensor& entering) {
  const at::Tensor norms = entering.detach().norm(2, -1).view({texts_.rows, texts_.length}).cpu();
  const at::Tensor leading = model_.config().causal() ? norms.select(1, 0) : norms.amax(1);
  const at::Tensor others =
      (norms.sum(1) - leading) / static_cast<double>(std::max<std::int64_t>(1, texts_.length - 1));
  counts_.massive.push_back((leading / others).sum().item<double>());
}

void Prober::count_map(std::int64_t row, std::span<const float> columns) {
  const auto positions = static_cast<double>(columns.size());
  const std::vector<double> alphas = visible_means(columns, model_.config().causal());
  const double alpha = alphas[0];
  counts_.maps += 1;
  counts_.alpha_first += alpha;
  counts_.largest += *std::max_element(columns.begin(), columns.end());
  counts_.keys += positions;
  const std::vector<int> sinks = detect_sinks(columns, {});
  counts_.sinks += static_cast<double>(sinks.size());
  for (const int key : sinks)
    counts_.masked_sinks += ids_[static_cast<std::size_t>(row * texts_.length + key)] == mask_id_ ? 1 : 0;
  const bool sinks_here = model_.config().causal() ? alpha > sink_epsilon_of_means : !sinks.empty();
  counts_.maps_with_sink += sinks_here ? 1 : 0;
  // What the rows lack of 1 went to the slot, which every query sees.
  const double slot = 1 - std::accumulate(columns.begin(), columns.end(), 0.0) / positions;
  counts_.alpha_slot += slot;
  counts_.maps_with_slot_sink += slot > sink_epsilon_of_means ? 1 : 0;
  counts_.first_sinks.resize(std::min(most_first_positions, columns.size()));
  for (std::size_t k = 0; k < counts_.first_sinks.size(); ++k)
    counts_.first_sinks[k] += alphas[k] > sink_epsilon_of_means ? 1 : 0;
}

void Prober::look(const LayerStates& states) {
  count_norms(states.entering);
  const ModelConfig& config = model_.config();
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= texts_.rows; ++b) offsets.push_back(b * texts_.length);
  const std::vector<std::uint8_t> classes(ids_.size(), static_cast<std::uint8_t>(QueryClass::prompt));
  const AttentionLayout layout{
      offsets, classes, {}, config.causal(), config.window_of(states.layer), config.attention.prefix};
  const auto flat = [](const at::Tensor& t) { return t.detach().flatten(0, 1).contiguous(); };
  AttentionRequest request;
  request.columns = true;
  request.layer_variant = states.variant;
  const bool kernels = states.variant.variant == nullptr && config.attention.prefix == 0;
  const Backend backend = states.query.is_cpu() && kernels ? Backend::cpu : Backend::aten;
  const AttentionResult seen =
      attention(backend, flat(states.query), flat(states.key), flat(states.value), layout, request);
  const at::Tensor columns = seen.observation.column_sum.sum(0).contiguous();  // [H, B T]
  for (std::int64_t h = 0; h < config.heads; ++h)
    for (std::int64_t b = 0; b < texts_.rows; ++b)
      count_map(b, {columns.data_ptr<float>() + h * columns.size(1) + b * texts_.length,
                    static_cast<std::size_t>(texts_.length)});
}

std::vector<std::int32_t> masked(const ProbeTexts& texts, std::int32_t mask_id, std::uint64_t seed) {
  const RandomPlaces random(seed, "probe", 0);
  std::vector<std::int32_t> ids = texts.ids;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto row = i / static_cast<std::size_t>(texts.length);
    if (random.uniform(i) < 0.25 * static_cast<double>(1 + row % 3)) ids[i] = mask_id;
  }
  return ids;
}

}  // namespace

ProbeTexts probe_texts(const TokenCache& cache, const ProbeConfig& config) {
  ProbeTexts texts{0, config.positions, {}};
  for (std::int64_t d = 0; d < cache.documents() && texts.rows < config.samples; ++d) {
    const std::span<const std::int32_t> ids = cache.document(d).ids;
    if (static_cast<std::int64_t>(ids.size()) < config.positions) continue;
    texts.ids.insert(texts.ids.end(), ids.begin(), ids.begin() + config.positions);
    ++texts.rows;
  }
  if (texts.rows == 0)
    throw Error("no text for the probe has {} tokens; fewer positions would be right", config.positions);
  return texts;
}

nlohmann::ordered_json probe_sinks(const TrainableModel& model, const ProbeTexts& texts, std::int32_t mask_id,
                                   std::uint64_t seed) {
  const at::NoGradGuard no_gradients;
  const bool causal = model.config().causal();
  const std::vector<std::int32_t> ids = causal ? texts.ids : masked(texts, mask_id, seed);
  at::Tensor input = at::empty({static_cast<std::int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), input.data_ptr<std::int64_t>());
  Prober prober(model, texts, ids, mask_id);
  hidden_rows(model, input.to(model.embedding.device()), texts.rows, ProductPrecision::f32,
              [&](const LayerStates& states) { prober.look(states); });
  const Counts& counts = prober.counts();
  nlohmann::ordered_json result{{"sink_rate", counts.maps_with_sink / counts.maps},
                                {"alpha_first", counts.alpha_first / counts.maps}};
  const auto share = [&](double count) { return count / counts.maps; };
  if (causal)
    for (const double count : counts.first_sinks) result["sink_rates"].push_back(share(count));
  if (model.config().attention.slot != KeySlot::none) {
    result["slot_rate"] = share(counts.maps_with_slot_sink);
    result["alpha_slot"] = share(counts.alpha_slot);
  }
  if (!causal) {
    result["sink_share"] = counts.sinks / counts.keys;
    result["largest_column"] = counts.largest / counts.maps;
    result["masked_sinks"] = counts.sinks > 0 ? counts.masked_sinks / counts.sinks : 0;
  }
  std::vector<double> massive = counts.massive;
  for (double& ratio : massive) ratio /= static_cast<double>(texts.rows);
  result["massive_ratio"] = massive;
  return result;
}

}  // namespace sinkscope
