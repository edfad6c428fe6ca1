#include "model/flops.h"

#include <fmt/format.h>

namespace sinkscope {

ForwardFlops forward_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted) {
  const auto s = static_cast<double>(positions), r = static_cast<double>(wanted);
  const auto width = static_cast<double>(config.width), mlp = static_cast<double>(config.mlp_width);
  const auto query_width = static_cast<double>(config.heads * config.head_dim);
  const auto key_width = static_cast<double>(config.kv_heads * config.head_dim);
  const auto layers = static_cast<double>(config.layers);
  const double rows_out = (layers - 1) * s + r;  // rows that leave a block, over all blocks
  return {layers * 2 * s * width * (query_width + 2 * key_width) + 2 * rows_out * width * query_width,
          layers * 2 * s * s * query_width + 2 * rows_out * s * query_width, 6 * rows_out * width * mlp,
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
       fmt::format("{} * 2 * {} * {} * {} + {} * 2 * {} * {}", config.layers, positions, positions,
                   query_width, rows_out, positions, query_width),
       flops.attention);
  line("MLP", fmt::format("{} * 6 * {} * {}", rows_out, config.width, config.mlp_width), flops.mlp);
  line("head", fmt::format("2 * {} * {} * {}", wanted, config.width, config.head_rows), flops.head);
  line("together", "", flops.total());
  return text;
}

}  // namespace sinkscope
