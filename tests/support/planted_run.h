// Run directories whose sinks are known because they were planted.
#pragma once

#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>
#include <sinkscope/sample_writer.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sinkscope::testing {

/// Keys that a class of queries looks at: each of its queries gives every one of `keys` the share `share`,
/// and divides the rest evenly among the other keys.
struct Plant {
  std::vector<int> keys;
  double share = 0.25;
};

struct PlantedSample {
  int steps = 10;      // T
  int positions = 40;  // S
  int prompt_length = 8;
  int mask_id = 99;
  ArrayType array_type = ArrayType::float32;
  /// What the queries of a class look at: 0 prompt, 1 decoded, 2 masked.
  std::function<Plant(int step, int layer, int head, int query_class)> plant = [](int, int, int, int) {
    return Plant{};
  };
  /// Input id at a step, the final ids at step T. Where it is not set, the prompt is 1, 2, 3, ..., and behind
  /// it one mask a step becomes the token 50, from left to right.
  std::function<int(int step, int position)> id = nullptr;

  /// What the intervention did to the prediction of a masked position. Where it is not set, the sample has no
  /// such arrays.
  struct Effect {
    float kl, confidence, probability, removed_mass;
    bool agrees;
  };
  std::function<Effect(int step, int position)> effect = nullptr;

  int id_at(int step, int position) const {
    if (id) return id(step, position);
    if (position < prompt_length) return position + 1;
    return position < prompt_length + step ? 50 : mask_id;
  }
  int class_of(int step, int position) const {
    if (id_at(step, position) == mask_id) return 2;
    return position < prompt_length ? 0 : 1;
  }
};

class PlantedRun {
 public:
  PlantedRun(const std::filesystem::path& folder, int layers, int heads, const std::string& model = "planted")
      : layers_(layers), heads_(heads), run_(RunDirectory::create(folder, info_of(layers, heads, model))) {}

  void add(const PlantedSample& sample) {
    const std::int64_t index = samples_++;
    SampleWriter writer(sample_path(run_.folder(), index), layout_of(sample));
    for (int t = 0; t < sample.steps; ++t) {
      const std::vector<std::int32_t> ids = ids_at(sample, t);
      const std::vector<float> columns = columns_at(sample, t);
      const std::vector<std::int32_t> proposed(ids.size(), -1);
      const std::vector<float> confidence(ids.size(), 0);
      SampleStep step;
      step.states = ids;
      step.proposed = proposed;
      step.confidence = confidence;
      step.column_sum = columns;
      const EffectArrays effect(sample, t);
      step.effect_kl = effect.kl;
      step.effect_agrees = effect.agrees;
      step.effect_confidence = effect.confidence;
      step.effect_probability = effect.probability;
      step.removed_mass = effect.removed_mass;
      writer.append_step(step);
    }
    writer.finish(ids_at(sample, sample.steps));
    SampleRecord record;
    record.index = index;
    run_.add_sample(record);
  }

  void end() { run_.end(); }

 private:
  struct EffectArrays {
    EffectArrays(const PlantedSample& sample, int step) {
      for (int j = 0; sample.effect && j < sample.positions; ++j) {
        const bool masked = sample.class_of(step, j) == 2;
        const PlantedSample::Effect none{NAN, NAN, NAN, NAN, false};
        const PlantedSample::Effect own = masked ? sample.effect(step, j) : none;
        kl.push_back(own.kl);
        confidence.push_back(own.confidence);
        probability.push_back(own.probability);
        removed_mass.push_back(own.removed_mass);
        agrees.push_back(masked ? (own.agrees ? 1 : 0) : 255);
      }
    }
    std::vector<float> kl, confidence, probability, removed_mass;
    std::vector<std::uint8_t> agrees;
  };

  static RunInfo info_of(int layers, int heads, const std::string& model) {
    RunInfo info;
    info.command = "run";
    info.model = {model, "llada", layers, heads, heads, 99, "", ""};
    return info;
  }

  SampleLayout layout_of(const PlantedSample& sample) const {
    SampleLayout layout;
    layout.positions = sample.positions;
    layout.layers = layers_;
    layout.heads = layout.kv_heads = heads_;
    layout.prompt_length = sample.prompt_length;
    layout.mask_id = sample.mask_id;
    layout.array_type = sample.array_type;
    layout.effect = static_cast<bool>(sample.effect);
    return layout;
  }

  static std::vector<std::int32_t> ids_at(const PlantedSample& sample, int step) {
    std::vector<std::int32_t> ids;
    for (int j = 0; j < sample.positions; ++j) ids.push_back(sample.id_at(step, j));
    return ids;
  }

  // [3,L,H,S]
  std::vector<float> columns_at(const PlantedSample& sample, int step) const {
    std::vector<double> queries(3, 0);
    for (int j = 0; j < sample.positions; ++j) ++queries[sample.class_of(step, j)];
    std::vector<float> columns;
    for (int c = 0; c < 3; ++c)
      for (int l = 0; l < layers_; ++l)
        for (int h = 0; h < heads_; ++h) {
          const Plant plant = sample.plant(step, l, h, c);
          const auto planted = static_cast<double>(plant.keys.size());
          const double other = (1 - plant.share * planted) / (sample.positions - planted);
          std::vector<float> row(static_cast<std::size_t>(sample.positions),
                                 static_cast<float>(queries[c] * other));
          for (const int key : plant.keys) row[key] = static_cast<float>(queries[c] * plant.share);
          columns.insert(columns.end(), row.begin(), row.end());
        }
    return columns;
  }

  int layers_, heads_;
  std::int64_t samples_ = 0;
  RunDirectory run_;
};

}  // namespace sinkscope::testing
