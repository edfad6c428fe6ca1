#include "model/flops.h"

#include <fmt/format.h>

namespace sinkscope {
namespace {

// Pairs of a query and a key it sees, for the last `queries` of `positions`, in this layer.
double seen_pairs(const ModelConfig& config, std::int64_t layer, std::int64_t positions,
                  std::int64_t queries) {
  if (!config.causal()) return static_cast<double>(queries) * static_cast<double>(positions);
  const std::int64_t window = config.window_of(layer);
  double pairs = 0;
  for (std::int64_t query = positions - queries; query < positions; ++query)
    pairs += static_cast<double>(window > 0 && window < query + 1 ? window : query + 1);
  return pairs;
}

// Multiply-adds of a row's feed-forward part.
double mlp_products(const ModelConfig& config) {
  const double one = 3 * static_cast<double>(config.width) * static_cast<double>(config.mlp_width);
  if (!config.experts) return one;
  return one * static_cast<double>(config.experts->chosen) +
         static_cast<double>(config.width) * static_cast<double>(config.experts->count);
}

double attention_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted) {
  double pairs = 0;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const bool last = layer + 1 == config.layers;
    pairs += seen_pairs(config, layer, positions, positions) +
             seen_pairs(config, layer, positions, last ? wanted : positions);
  }
  return 2 * pairs * static_cast<double>(config.heads * config.head_dim);
}

}  // namespace

ForwardFlops forward_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted) {
  const auto s = static_cast<double>(positions), r = static_cast<double>(wanted);
  const auto width = static_cast<double>(config.width);
  const auto query_width = static_cast<double>(config.heads * config.head_dim);
  const auto key_width = static_cast<double>(config.kv_heads * config.head_dim);
  const auto layers = static_cast<double>(config.layers);
  const double rows_out = (layers - 1) * s + r;  // rows that leave a block, over all blocks
  return {layers * 2 * s * width * (query_width + 2 * key_width) + 2 * rows_out * width * query_width,
          attention_flops(config, positions, wanted), 2 * rows_out * mlp_products(config),
          2 * r * width * static_cast<double>(config.head_rows)};
}

std::string describe_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted) {
  const ForwardFlops flops = forward_flops(config, positions, wanted);
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  const std::string rows_out = fmt::format("({} * {} + {})", config.layers - 1, positions, wanted);
  std::string text;
  const auto line = [&](const char* what, const std::string& formula, double count) {
    text += fmt::format("  {:<14} {:<48} = {:10.3f} GFLOP\n", what, formula, count * 1e-9);
  };
  line("projections",
       fmt::format("{} * 2 * {} * {} * ({} + 2 * {}) + {} * 2 * {} * {}", config.layers, positions,
                   config.width, query_width, key_width, rows_out, config.width, query_width),
       flops.projections);
  line("attention",
       config.causal() ? fmt::format("4 * {} * pairs of a query and a key it sees", query_width)
                       : fmt::format("{} * 2 * {} * {} * {} + {} * 2 * {} * {}", config.layers, positions,
                                     positions, query_width, rows_out, positions, query_width),
       flops.attention);
  if (config.experts)
    line("MLP",
         fmt::format("{} * (6 * {} * {} * {} + 2 * {} * {})", rows_out, config.width, config.mlp_width,
                     config.experts->chosen, config.width, config.experts->count),
         flops.mlp);
  else
    line("MLP", fmt::format("{} * 6 * {} * {}", rows_out, config.width, config.mlp_width), flops.mlp);
  line("head", fmt::format("2 * {} * {} * {}", wanted, config.width, config.head_rows), flops.head);
  line("together", "", flops.total());
  return text;
}

}  // namespace sinkscope
