// Samples whose way from masks to tokens is known because it was planted, for what compares runs.
#pragma once

#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope::testing {

constexpr std::int32_t planted_mask = 99;

/// Arrays of one sample of a model with one layer of one head. What is empty is not written.
struct PlantedTrajectory {
  std::int32_t prompt_length = 2;
  std::vector<std::vector<std::int32_t>> states;                // [T+1][S]
  std::vector<std::vector<float>> confidence;                   // [T][S]
  std::vector<std::vector<std::uint8_t>> masked_keys;           // [T][S]
  std::vector<std::vector<std::uint16_t>> queries_without_key;  // [T][S]
  /// kl, confidence, probability, removed_mass, [T][S] each, or of an autoregressive sample [T][1].
  std::vector<std::vector<std::vector<float>>> effect;
  std::vector<std::vector<std::uint8_t>> effect_agrees;  // likewise

  void write(const std::filesystem::path& file) const {
    NpzWriter writer(file);
    const auto positions = static_cast<std::int64_t>(states.front().size());
    writer.declare("states", ArrayType::int32, {positions});
    if (!confidence.empty()) writer.declare("confidence", ArrayType::float32, {positions});
    if (!masked_keys.empty()) writer.declare("masked_keys", ArrayType::uint8, {1, 1, positions});
    if (!queries_without_key.empty())
      writer.declare("queries_without_key", ArrayType::uint16, {1, 1, positions});
    write_effect(writer);
    writer.add("prompt_length", {}, std::span(&prompt_length, 1));
    for (const auto& row : states) writer.append("states", row);
    for (const auto& row : confidence) writer.append("confidence", row);
    for (const auto& row : masked_keys) writer.append("masked_keys", row);
    for (const auto& row : queries_without_key) writer.append("queries_without_key", row);
    writer.finish();
  }

 private:
  void write_effect(NpzWriter& writer) const {
    if (effect.empty()) return;
    std::vector<std::int64_t> slice;
    if (effect_agrees.front().size() > 1) slice = {static_cast<std::int64_t>(effect_agrees.front().size())};
    writer.declare("effect_agrees", ArrayType::uint8, slice);
    for (const auto& row : effect_agrees) writer.append("effect_agrees", row);
    const char* const names[]{"effect_kl", "effect_confidence", "effect_probability", "removed_mass"};
    for (std::size_t i = 0; i < effect.size(); ++i) {
      writer.declare(names[i], ArrayType::float32, slice);
      for (const auto& row : effect[i]) writer.append(names[i], row);
    }
  }
};

/// The prompt 1, 2 and `tokens` behind it, masks at first; forward t opens the places `opened[t]`, counted
/// from the prompt's end. Every mask is a candidate with the confidence 0.5.
inline PlantedTrajectory opening(const std::vector<std::int32_t>& tokens,
                                 const std::vector<std::vector<int>>& opened) {
  PlantedTrajectory sample;
  std::vector<std::int32_t> row{1, 2};
  row.insert(row.end(), tokens.size(), planted_mask);
  for (const std::vector<int>& places : opened) {
    sample.states.push_back(row);
    std::vector<float> confidence;
    for (const std::int32_t id : row) confidence.push_back(id == planted_mask ? 0.5F : NAN);
    sample.confidence.push_back(confidence);
    for (const int place : places) row[place + 2] = tokens[place];
  }
  sample.states.push_back(row);
  return sample;
}

/// An autoregressive sample: prompt 1, 2, the tokens one by one, -1 up to `longest` tokens.
inline PlantedTrajectory growing(const std::vector<std::int32_t>& tokens, std::size_t longest) {
  PlantedTrajectory sample;
  std::vector<std::int32_t> row(2 + longest, -1);
  row[0] = 1, row[1] = 2;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sample.states.push_back(row);
    row[2 + i] = tokens[i];
  }
  sample.states.push_back(row);
  return sample;
}

/// A run directory of such samples.
class TrajectoryRun {
 public:
  explicit TrajectoryRun(const std::filesystem::path& folder,
                         std::optional<std::int32_t> mask_id = planted_mask)
      : run_(RunDirectory::create(folder, info_of(mask_id))) {}

  void add(std::int64_t index, const PlantedTrajectory& sample, const std::string& text = "",
           const std::optional<std::string>& reference = std::nullopt) {
    sample.write(sample_path(run_.folder(), index));
    SampleRecord record;
    record.index = index;
    record.text = text;
    record.reference = reference;
    run_.add_sample(record);
  }
  std::filesystem::path end() {
    run_.end();
    return run_.folder();
  }

 private:
  static RunInfo info_of(std::optional<std::int32_t> mask_id) {
    RunInfo info;
    info.model = {"planted", "", 1, 1, 1, mask_id, "", ""};
    return info;
  }
  RunDirectory run_;
};

}  // namespace sinkscope::testing
