// Run directories that are broken or of another kind: one sentence each, which names the place.
#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cmath>

#include "measure/measure_runs.h"
#include "support/planted_run.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::write_file;

// Arrays of a sample of 2 steps, 1 layer, 2 heads, 5 positions, each of which may be spoilt.
struct Arrays {
  std::vector<std::int64_t> states_shape{3, 5};
  std::vector<std::int32_t> states = std::vector<std::int32_t>(15, 7);
  std::vector<std::int64_t> sums_shape{2, 3, 1, 2, 5};
  std::vector<float> sums = std::vector<float>(60, 1);
  std::int32_t prompt_length = 2;
  bool sums_as_integers = false;
  std::vector<std::string> without = {};

  bool has(const std::string& name) const {
    return std::find(without.begin(), without.end(), name) == without.end();
  }

  void write(const std::filesystem::path& file) const {
    NpzWriter writer(file);
    if (has("states")) writer.add("states", states_shape, states);
    if (has("column_sum") && sums_as_integers)
      writer.add("column_sum", sums_shape, std::vector<std::int32_t>(sums.size()));
    else if (has("column_sum"))
      writer.add("column_sum", ArrayType::float32, sums_shape, sums);
    if (has("prompt_length")) writer.add("prompt_length", {}, std::span(&prompt_length, 1));
    writer.finish();
  }
};

class HostileRun : public ::testing::Test {
 protected:
  // All that readers ask for.
  void SetUp() override {
    std::filesystem::create_directory(run);
    write_file(run / "run.json", R"({"format": 1, "model": {"layers": 1, "heads": 2, "mask_id": 99}})");
    write_file(run / "samples.jsonl", "{\"index\": 0}\n");
    Arrays().write(run / "sample_00000.npz");
  }
  void measure() const { measure_runs({run}, {}, {}); }
  void expect_refused(const Arrays& arrays, const std::string& message) const {
    arrays.write(run / "sample_00000.npz");
    EXPECT_THAT([&] { measure(); },
                ThrowsMessage<Error>(AllOf(HasSubstr("sample_00000.npz"), HasSubstr(message))));
  }
  TemporaryFolder folder;
  std::filesystem::path run = folder / "run";
};

TEST_F(HostileRun, WhatReadersAskForIsEnough) {
  const auto result = measure_runs({run}, {}, {})["runs"][0];
  EXPECT_EQ(result["samples"], 1);
  EXPECT_EQ(result["model"], "");
}

TEST_F(HostileRun, NoRunDirectory) {
  EXPECT_THAT([&] { measure_runs({folder / "nowhere"}, {}, {}); },
              ThrowsMessage<Error>(HasSubstr("nowhere is no run directory: it has no run.json")));
}

TEST_F(HostileRun, RunJson) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"{", "run.json"},
           {R"({"format": 2})", "format 2"},
           {R"({"format": 1, "model": {"layers": 1, "heads": 2}})", "mask_id is missing"},
           {R"({"format": 1, "model": {"layers": 0, "heads": 2, "mask_id": 9}})", "model.layers is 0"},
           {R"({"format": 1, "model": {"layers": 1, "heads": -1, "mask_id": 9}})", "model.heads is -1"},
           {R"({"format": 1, "model": {"layers": 1e9, "heads": 2, "mask_id": 9}})", "layers"},
           {R"({"format": 1, "model": {"layers": 1000000, "heads": 2, "mask_id": 9}})", "1 to 4096"}}) {
    write_file(run / "run.json", text);
    EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr(message))) << text;
  }
}

TEST_F(HostileRun, Samples) {
  write_file(run / "samples.jsonl", "");
  EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr("has no finished sample")));
  write_file(run / "samples.jsonl", "{\"index\": 5}\n");
  EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr("sample_00005.npz")));
  std::filesystem::remove(run / "samples.jsonl");
  EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr("samples.jsonl")));
}

TEST_F(HostileRun, AFileThatIsCutOff) {
  const std::string whole = testing::content_of(run / "sample_00000.npz");
  write_file(run / "sample_00000.npz", whole.substr(0, whole.size() / 2));
  EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr("sample_00000.npz")));
}

TEST_F(HostileRun, MissingArrays) {
  expect_refused({.without = {"states"}}, "states");
  expect_refused({.without = {"prompt_length"}}, "prompt_length");
  expect_refused({.without = {"column_sum"}}, "without --capture none");
}

TEST_F(HostileRun, AnAutoregressiveRun) {
  NpzWriter writer(run / "sample_00000.npz");
  writer.add("last_row_0", ArrayType::float32, {1, 2, 5}, std::vector<float>(10, 0.2F));
  writer.finish();
  EXPECT_THAT([&] { measure(); }, ThrowsMessage<Error>(HasSubstr("autoregressive model")));
}

TEST_F(HostileRun, WrongShapes) {
  expect_refused({.sums_shape = {2, 3, 2, 1, 5}}, "column_sum has the shape [2,3,2,1,5]");
  expect_refused({.sums_shape = {1, 3, 1, 2, 10}}, "ask for [T,3,L,H,S] = [2,3,1,2,5]");
  expect_refused({.sums_shape = {60}}, "column_sum has the shape [60]");
  expect_refused({.states_shape = {15}}, "states has the shape [15]");
  expect_refused({.states_shape = {1, 15}}, "T and S of at least 1");
  expect_refused({.states_shape = {15, 0}, .states = {}}, "T and S of at least 1");
  expect_refused({.sums_as_integers = true}, "column_sum holds int32; float16 or float32 is right");
}

TEST_F(HostileRun, ValuesThatCannotBe) {
  Arrays arrays;
  arrays.sums[30 + 10 + 5 + 3] = NAN;  // step 1, class 1, head 1, key 3
  expect_refused(arrays, "column_sum is nan at step 1, class decoded, layer 0, head 1, key 3");
  arrays.sums[48] = INFINITY;
  expect_refused(arrays, "column_sum is inf");
  arrays.sums[48] = 3e38F;
  expect_refused(arrays, "column_sum is 3e+38");
  arrays.sums[48] = -0.5F;
  expect_refused(arrays, "column_sum is -0.5");
  expect_refused({.prompt_length = 6}, "prompt_length is 6; it must lie between 0 and the 5 positions");
  expect_refused({.prompt_length = -1}, "prompt_length is -1");
  expect_refused({.states = std::vector<std::int32_t>(15, -1)}, "states holds the id -1");
}

TEST_F(HostileRun, AnInterruptedRunIsMeasuredAsFarAsItGot) {
  PlantedRun planted(folder / "interrupted", 1, 2);
  planted.add(PlantedSample{});
  std::vector<std::string> notes;
  MeasureCallbacks callbacks;
  callbacks.note = [&](const std::string& line) { notes.push_back(line); };
  EXPECT_EQ(measure_runs({folder / "interrupted"}, {}, callbacks)["pooled"]["samples"], 1);
  EXPECT_THAT(notes, ::testing::ElementsAre(HasSubstr("its 1 finished samples are measured")));
}

}  // namespace
}  // namespace sinkscope
