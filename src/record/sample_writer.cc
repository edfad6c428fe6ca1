#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/sample_writer.h>

#include "record/effect_arrays.h"

namespace sinkscope {
namespace {

constexpr std::int64_t query_classes = 3;  // prompt, decoded, masked

std::string map_name(const std::pair<int, int>& map) {
  return fmt::format("map_L{}_H{}", map.first, map.second);
}

}  // namespace

// The order of these calls is the order of the file.
SampleWriter::SampleWriter(std::filesystem::path path, SampleLayout layout)
    : layout_(std::move(layout)), writer_(std::move(path)) {
  const std::int64_t positions = layout_.positions, layers = layout_.layers, heads = layout_.heads;
  writer_.declare("states", ArrayType::int32, {positions});
  writer_.declare("proposed", ArrayType::int32, {positions});
  writer_.declare("confidence", ArrayType::float32, {positions});
  if (layout_.columns)
    writer_.declare("column_sum", layout_.array_type, {query_classes, layers, heads, positions});
  if (layout_.intervention) writer_.declare("masked_keys", ArrayType::uint8, {layers, heads, positions});
  if (layout_.own_keys) writer_.declare("queries_without_key", ArrayType::uint16, {layers, heads, positions});
  writer_.add("prompt_length", {}, std::span(&layout_.prompt_length, 1));
  writer_.add("mask_id", {}, std::span(&layout_.mask_id, 1));
  if (layout_.full) {
    writer_.declare("diagonal", layout_.array_type, {layers, heads, positions});
    writer_.declare("row_entropy", layout_.array_type, {query_classes, layers, heads});
    writer_.declare("row_max", layout_.array_type, {query_classes, layers, heads});
    writer_.declare("value_norm", layout_.array_type, {layers, layout_.kv_heads, positions});
  }
  for (const auto& map : layout_.maps)
    writer_.declare(map_name(map), layout_.array_type, {positions, positions});
  if (!layout_.effect) return;
  for (const EffectArray& array : effect_arrays) writer_.declare(array.name, array.type, {positions});
}

void SampleWriter::append_step(const SampleStep& step) {
  if (step.maps.size() != layout_.maps.size())
    throw Error("{}: a step came with {} maps, not {}", writer_.path().string(), step.maps.size(),
                layout_.maps.size());
  writer_.append("states", step.states);
  writer_.append("proposed", step.proposed);
  writer_.append("confidence", step.confidence);
  if (layout_.columns) writer_.append("column_sum", step.column_sum);
  if (layout_.intervention) writer_.append("masked_keys", step.masked_keys);
  if (layout_.own_keys) writer_.append("queries_without_key", step.queries_without_key);
  if (layout_.full) {
    writer_.append("diagonal", step.diagonal);
    writer_.append("row_entropy", step.row_entropy);
    writer_.append("row_max", step.row_max);
    writer_.append("value_norm", step.value_norm);
  }
  for (std::size_t i = 0; i < step.maps.size(); ++i) writer_.append(map_name(layout_.maps[i]), step.maps[i]);
  if (!layout_.effect) return;
  writer_.append("effect_kl", step.effect_kl);
  writer_.append("effect_agrees", step.effect_agrees);
  writer_.append("effect_confidence", step.effect_confidence);
  writer_.append("effect_probability", step.effect_probability);
  writer_.append("removed_mass", step.removed_mass);
}

void SampleWriter::finish(std::span<const std::int32_t> final_ids) {
  writer_.append("states", final_ids);
  writer_.finish();
}

}  // namespace sinkscope
