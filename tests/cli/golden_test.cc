// The golden cases through the command line: ids exactly, arrays within their tolerances, the same bytes for
// any number of threads.
#include <sinkscope/npz.h>
#include <sinkscope/safetensors.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using testing::run_program;
using testing::TemporaryFolder;

// Trained models' fixtures hold other people's texts and lie beside the project, where given.
std::filesystem::path model_dir(const std::string& name) {
  if (!name.starts_with("tiny-")) return std::filesystem::path(SINKSCOPE_TEST_DATA) / "golden" / name;
  return std::filesystem::path(SINKSCOPE_SHARED_DIR) / "models" / name;
}

// One tensor of a fixture, all numbers as double.
struct Values {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  std::int64_t inner(std::size_t axis) const {
    std::int64_t product = 1;
    for (std::size_t a = axis + 1; a < shape.size(); ++a) product *= shape[a];
    return product;
  }
};

template <typename T>
void append(const TensorView& view, std::vector<double>& to) {
  for (std::int64_t i = 0; i < view.element_count(); ++i) {
    T value;
    std::memcpy(&value, view.bytes.data() + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    to.push_back(static_cast<double>(value));
  }
}

Values values_of(const SafetensorsFile& file, const std::string& name) {
  const TensorView& view = file.tensor(name);
  Values values{view.shape, {}};
  if (view.dtype == DType::i64)
    append<std::int64_t>(view, values.data);
  else if (view.dtype == DType::i32)
    append<std::int32_t>(view, values.data);
  else
    append<float>(view, values.data);
  return values;
}

// The part of `values` at index `at` of `axis`, that axis gone.
Values select(const Values& values, std::size_t axis, std::int64_t at) {
  Values part{values.shape, {}};
  part.shape.erase(part.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::int64_t inner = values.inner(axis);
  const std::int64_t outer = static_cast<std::int64_t>(values.data.size()) / (inner * values.shape[axis]);
  for (std::int64_t o = 0; o < outer; ++o) {
    const auto first = values.data.begin() + (o * values.shape[axis] + at) * inner;
    part.data.insert(part.data.end(), first, first + inner);
  }
  return part;
}

void expect_near(const NpzFile& file, const std::string& name, const Values& expected, double absolute,
                 double relative = 0) {
  ASSERT_EQ(file.array(name).shape, expected.shape) << name;
  const std::vector<float> found = file.floats(name);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_LE(std::abs(found[i] - expected.data[i]),
              std::max(absolute, relative * std::abs(expected.data[i])))
        << name << " element " << i;
}

std::string ids_text(const Values& row) {
  std::string text;
  for (const double id : row.data) text += (text.empty() ? "" : ",") + std::to_string(static_cast<int>(id));
  return text;
}

std::vector<std::string> run_arguments(const std::string& model, const json& c, const Values& prompts) {
  std::vector<std::string> arguments{
      "run", model_dir(model).string(), "--dtype", "f32", "--array-dtype", "f32", "--quiet"};
  const auto add = [&](const std::string& option, const auto& value) {
    arguments.push_back(option);
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
      arguments.push_back(json(value).dump());
    else
      arguments.push_back(value);
  };
  for (std::int64_t b = 0; b < prompts.shape[0]; ++b) add("--prompt-ids", ids_text(select(prompts, 0, b)));
  if (c.at("kind") == "ar_generate") {
    add("--gen-len", c.at("new_tokens").get<int>());
    arguments.insert(arguments.end(), {"--ignore-eos", "--capture", "full"});
  } else {
    add("--steps", c.at("steps").get<int>());
    add("--gen-len", c.at("gen_length").get<int>());
  }
  if (c.contains("block_length")) add("--block_len", c["block_length"].get<int>());  // underscores do, too
  for (const char* option : {"alg", "alg_temp", "top_p", "top_k"})
    if (c.contains(option)) {
      arguments.push_back(std::string("--") + option);
      arguments.push_back(c[option].is_string() ? c[option].get<std::string>() : c[option].dump());
    }
  if (c.contains("temperature")) add("--temperature", c["temperature"].get<double>());
  if (c.contains("cfg_scale")) add("--cfg", c["cfg_scale"].get<double>());
  if (c.contains("remasking")) add("--remasking", c["remasking"].get<std::string>());
  if (c.contains("seed")) add("--seed", c["seed"].get<int>());
  if (c.contains("sink")) {
    add("--sink-top-k", c["sink"]["top_k"].get<int>());
    add("--epsilon", c["sink"]["eps"].get<double>());
  }
  if (prompts.shape[0] > 1) add("--batch", 2);
  return arguments;
}

void expect_predictions(const SafetensorsFile& golden, const std::string& name, std::int64_t b,
                        const Values& states, const NpzFile& sample) {
  const Values proposed = select(values_of(golden, name + ".proposed"), 1, b);
  const Values confidence = select(values_of(golden, name + ".confidence"), 1, b);
  const std::vector<std::int32_t> found_proposed = sample.int32s("proposed");
  const std::vector<float> found_confidence = sample.floats("confidence");
  const std::int32_t mask_id = sample.int32_scalar("mask_id");
  for (std::size_t i = 0; i < proposed.data.size(); ++i) {
    ASSERT_EQ(found_proposed[i], states.data[i] == mask_id ? proposed.data[i] : -1)
        << name << " element " << i;
    ASSERT_EQ(std::isnan(found_confidence[i]), std::isinf(confidence.data[i])) << name << " element " << i;
    if (!std::isnan(found_confidence[i])) {
      ASSERT_NEAR(found_confidence[i], confidence.data[i], 1e-4) << name << " element " << i;
    }
  }
}

void expect_sample(const SafetensorsFile& golden, const std::string& name, std::int64_t b,
                   const NpzFile& sample) {
  const Values states = select(values_of(golden, name + ".states"), 1, b);
  const Values final = select(values_of(golden, name + ".final"), 0, b);
  std::vector<double> all_states = states.data;
  all_states.insert(all_states.end(), final.data.begin(), final.data.end());
  const std::vector<std::int32_t> found_states = sample.int32s("states");
  ASSERT_EQ(std::vector<double>(found_states.begin(), found_states.end()), all_states) << name;
  // Dream's `origin` ranks nothing, so its fixture has neither proposals nor confidence.
  if (golden.find(name + ".proposed") != nullptr) expect_predictions(golden, name, b, states, sample);
  expect_near(sample, "column_sum", select(values_of(golden, name + ".column_sum_by_class"), 2, b), 1e-4,
              1e-5);
  EXPECT_EQ(sample.contains("masked_keys"), golden.find(name + ".masked_keys") != nullptr);
  if (sample.contains("masked_keys"))
    expect_near(sample, "masked_keys", select(values_of(golden, name + ".masked_keys"), 1, b), 0);
}

// The rows, removed keys and logits of every generated token.
void expect_tokens(const SafetensorsFile& golden, const std::string& name, const NpzFile& sample) {
  const Values final = select(values_of(golden, name + ".final"), 0, 0);
  const std::vector<std::int32_t> states = sample.int32s("states");
  const std::size_t length = final.data.size();
  ASSERT_GE(states.size(), length);
  EXPECT_EQ(std::vector<double>(states.end() - static_cast<std::ptrdiff_t>(length), states.end()), final.data)
      << name;
  expect_near(sample, "logits", values_of(golden, name + ".logits"), 2e-4);
  const std::int64_t tokens = sample.array("logits").shape[0];
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::string number = std::to_string(t);
    expect_near(sample, "last_row_" + number, values_of(golden, name + ".row." + number), 1e-4);
    const std::string removed = name + ".masked_keys." + number;
    ASSERT_EQ(sample.contains("masked_keys_" + number), golden.find(removed) != nullptr) << number;
    if (golden.find(removed) != nullptr)
      expect_near(sample, "masked_keys_" + number, values_of(golden, removed), 0);
  }
}

void expect_run(const SafetensorsFile& golden, const std::string& name, const json& c, std::int64_t b,
                const NpzFile& sample) {
  if (c["kind"] == "ar_generate")
    expect_tokens(golden, name, sample);
  else
    expect_sample(golden, name, b, sample);
}

class GoldenRun : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenRun,
                         ::testing::Values("llada-random", "mmada-random", "dream-random", "llama-random",
                                           "qwen2-random", "tiny-llada", "tiny-llama"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(GoldenRun, EveryCaseAndTheSameBytesForAnyNumberOfThreads) {
  const std::filesystem::path directory = model_dir(GetParam());
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "the fixture " << directory << " is not there";
  const SafetensorsFile golden(directory / "golden.safetensors");
  int cases = 0;
  const json all = json::parse(content_of(directory / "golden.json"));
  for (const auto& [name, c] : all["cases"].items()) {
    if (c["kind"] == "forward") continue;
    ++cases;
    const TemporaryFolder folder;
    const Values prompts = values_of(golden, name + ".prompt");
    for (const std::string threads : {"1", "2", "3"}) {
      std::vector<std::string> arguments = run_arguments(GetParam(), c, prompts);
      arguments.insert(arguments.end(), {"--threads", threads, "--run-dir", folder / threads});
      const auto result = run_program(arguments);
      ASSERT_EQ(result.status, 0) << name << ": " << result.error;
    }
    for (std::int64_t b = 0; b < prompts.shape[0]; ++b) {
      const std::string file = "sample_0000" + std::to_string(b) + ".npz";
      expect_run(golden, name, c, b, NpzFile(folder / "1" / file));
      EXPECT_EQ(content_of(folder / "1" / file), content_of(folder / "2" / file)) << name;
      EXPECT_EQ(content_of(folder / "1" / file), content_of(folder / "3" / file)) << name;
    }
  }
  EXPECT_GE(cases, 1);
}

class GoldenForward : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenForward,
                         ::testing::Values("llada-random", "mmada-random", "dream-random", "llama-random",
                                           "qwen2-random"));

TEST_P(GoldenForward, EqualsTheFixtureAndTheSameBytesForAnyNumberOfThreads) {
  const std::filesystem::path directory = model_dir(GetParam());
  const SafetensorsFile golden(directory / "golden.safetensors");
  const Values ids = values_of(golden, "forward.input_ids");
  std::string rows;
  for (std::int64_t b = 0; b < ids.shape[0]; ++b) rows += (b > 0 ? ";" : "") + ids_text(select(ids, 0, b));
  const TemporaryFolder folder;
  for (const std::string threads : {"1", "2", "3"}) {
    const auto result = run_program({"forward", directory.string(), "--ids", rows, "--out", folder / threads,
                                     "--dtype", "f32", "--threads", threads});
    ASSERT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(content_of(folder / "1"), content_of(folder / threads));
  }
  const NpzFile found(folder / "1");
  expect_near(found, "input_ids", ids, 0);
  expect_near(found, "logits", values_of(golden, "forward.logits"), 2e-4);
  expect_near(found, "column_sum", values_of(golden, "forward.column_sum"), 1e-4, 1e-5);
  expect_near(found, "hidden_norm", values_of(golden, "forward.hidden_norm"), 2e-4);
}

}  // namespace
}  // namespace sinkscope
