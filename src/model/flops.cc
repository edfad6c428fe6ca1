#include "model/flops.h"

#include <fmt/format.h>

namespace sinkscope {

ForwardFlops forward_flops(const ModelConfig& config, std::int64_t positions, std::int64_t head_rows) {
  const auto s = static_cast<double>(positions), layers = static_cast<double>(config.layers);
  const auto width = static_cast<double>(config.width), mlp = static_cast<double>(config.mlp_width);
  const auto query_width = static_cast<double>(config.heads * config.head_dim);
  const auto key_width = static_cast<double>(config.kv_heads * config.head_dim);
  return {layers * 2 * s * width * (2 * query_width + 2 * key_width), layers * 4 * s * s * query_width,
          layers * 6 * s * width * mlp,
          2 * static_cast<double>(head_rows) * width * static_cast<double>(config.head_rows)};
}

std::string describe_flops(const ModelConfig& config, std::int64_t positions, std::int64_t head_rows) {
  const ForwardFlops flops = forward_flops(config, positions, head_rows);
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  std::string text;
  const auto line = [&](const char* what, const std::string& formula, double count) {
    text += fmt::format("  {:<12} {:<48} = {:10.3f} GFLOP\n", what, formula, count * 1e-9);
  };
  line("projections",
       fmt::format("{} * 2 * {} * {} * (2 * {} + 2 * {})", config.layers, positions, config.width,
                   query_width, key_width),
       flops.projections);
  line("attention", fmt::format("{} * 4 * {} * {} * {}", config.layers, positions, positions, query_width),
       flops.attention);
  line("MLP", fmt::format("{} * 6 * {} * {} * {}", config.layers, positions, config.width, config.mlp_width),
       flops.mlp);
  line("head", fmt::format("2 * {} * {} * {}", head_rows, config.width, config.head_rows), flops.head);
  line("together", "", flops.total());
  return text;
}

}  // namespace sinkscope
