#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/sample_writer.h>

#include "record/python.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using test::run_python;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

// Two layers, four heads, two of them KV heads, five positions.
SampleLayout small_layout() {
  SampleLayout layout;
  layout.positions = 5;
  layout.layers = 2;
  layout.heads = 4;
  layout.kv_heads = 2;
  layout.prompt_length = 2;
  layout.mask_id = 99;
  return layout;
}

// Arrays for a step of small_layout, each filled with values that tell the step.
struct StepData {
  explicit StepData(int step)
      : states(5, step),
        proposed(5, -step),
        confidence(5, 0.5F),
        columns(3 * 40, 0.25F * static_cast<float>(step)),
        masked(40, 1),
        rows(3 * 8, 2),
        values(20, 3),
        map(25, 0.125F) {}

  SampleStep all() const {
    return {states, proposed, confidence, columns,   masked, std::span(columns).first(40),
            rows,   rows,     values,     {map, map}};
  }

  std::vector<std::int32_t> states, proposed;
  std::vector<float> confidence, columns;
  std::vector<std::uint8_t> masked;
  std::vector<float> rows, values, map;
};

TEST(SampleWriter, CountsOfQueriesStandInThePlaceOfMaskedKeys) {
  const TemporaryFolder folder;
  SampleLayout layout = small_layout();
  layout.own_keys = true;
  const std::vector<std::uint16_t> queries(40, 300);
  SampleWriter writer(folder / "sample_00000.npz", layout);
  const StepData data(1);
  SampleStep step = data.all();
  step.maps.clear();
  step.queries_without_key = queries;
  writer.append_step(step);
  writer.finish(std::vector<std::int32_t>{9, 9, 9, 9, 9});
  const NpzFile file(folder / "sample_00000.npz");
  EXPECT_THAT(file.names(), ElementsAre("states", "proposed", "confidence", "column_sum",
                                        "queries_without_key", "prompt_length", "mask_id"));
  EXPECT_THAT(file.array("queries_without_key").shape, ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(file.int32s("queries_without_key")[7], 300);
}

TEST(SampleWriter, WritesEveryArrayOfTheInterfaceInItsOrder) {
  const TemporaryFolder folder;
  SampleLayout layout = small_layout();
  layout.full = layout.intervention = true;
  layout.maps = {{0, 3}, {1, 0}};
  SampleWriter writer(folder / "sample_00000.npz", layout);
  for (int step = 0; step < 3; ++step) writer.append_step(StepData(step).all());
  writer.finish(std::vector<std::int32_t>{9, 9, 9, 9, 9});

  const NpzFile file(folder / "sample_00000.npz");
  EXPECT_THAT(file.names(), ElementsAre("states", "proposed", "confidence", "column_sum", "masked_keys",
                                        "prompt_length", "mask_id", "diagonal", "row_entropy", "row_max",
                                        "value_norm", "map_L0_H3", "map_L1_H0"));
  EXPECT_THAT(file.array("states").shape, ElementsAre(4, 5));
  EXPECT_THAT(file.array("proposed").shape, ElementsAre(3, 5));
  EXPECT_THAT(file.array("confidence").shape, ElementsAre(3, 5));
  EXPECT_THAT(file.array("column_sum").shape, ElementsAre(3, 3, 2, 4, 5));
  EXPECT_THAT(file.array("masked_keys").shape, ElementsAre(3, 2, 4, 5));
  EXPECT_THAT(file.array("diagonal").shape, ElementsAre(3, 2, 4, 5));
  EXPECT_THAT(file.array("row_entropy").shape, ElementsAre(3, 3, 2, 4));
  EXPECT_THAT(file.array("row_max").shape, ElementsAre(3, 3, 2, 4));
  EXPECT_THAT(file.array("value_norm").shape, ElementsAre(3, 2, 2, 5));
  EXPECT_THAT(file.array("map_L0_H3").shape, ElementsAre(3, 5, 5));
  EXPECT_EQ(file.array("column_sum").type, ArrayType::float16);
  EXPECT_EQ(file.array("confidence").type, ArrayType::float32) << "whatever the type of the attention arrays";
  EXPECT_EQ(file.int32_scalar("prompt_length"), 2);
  EXPECT_EQ(file.int32_scalar("mask_id"), 99);
  EXPECT_THAT(file.int32s("states"), ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 9, 9, 9, 9, 9));
  EXPECT_EQ(file.floats("column_sum", 2, 1), std::vector<float>(120, 0.5F));
}

TEST(SampleWriter, LeavesOutWhatTheLayoutLeavesOut) {
  const TemporaryFolder folder;
  SampleLayout layout = small_layout();
  layout.columns = false;
  SampleWriter writer(folder / "none.npz", layout);
  const StepData data(1);
  writer.append_step({.states = data.states, .proposed = data.proposed, .confidence = data.confidence});
  writer.finish(data.states);
  EXPECT_THAT(NpzFile(folder / "none.npz").names(),
              ElementsAre("states", "proposed", "confidence", "prompt_length", "mask_id"));
}

TEST(SampleWriter, TheArrayTypeIsThatOfTheAttentionArrays) {
  const TemporaryFolder folder;
  SampleLayout layout = small_layout();
  layout.array_type = ArrayType::float32;
  SampleWriter writer(folder / "a.npz", layout);
  StepData data(1);
  data.columns.assign(120, 0.1F);
  SampleStep step = data.all();
  step.maps.clear();
  writer.append_step(step);
  writer.finish(data.states);
  EXPECT_EQ(NpzFile(folder / "a.npz").array("column_sum").type, ArrayType::float32);
  EXPECT_EQ(NpzFile(folder / "a.npz").floats("column_sum"), std::vector<float>(120, 0.1F));
}

TEST(SampleWriter, RefusesStepsThatDoNotFitTheLayout) {
  const TemporaryFolder folder;
  SampleWriter writer(folder / "a.npz", small_layout());
  const StepData data(1);
  EXPECT_THAT([&] { writer.append_step(data.all()); },
              ThrowsMessage<Error>(HasSubstr("came with 2 maps, not 0")));
  SampleStep step = data.all();
  step.maps.clear();
  step.column_sum = {};
  EXPECT_THAT([&] { writer.append_step(step); },
              ThrowsMessage<Error>(HasSubstr("a slice of column_sum has 120 values, not 0")));
  EXPECT_THAT([&] { writer.finish(std::span(data.states).first(4)); },
              ThrowsMessage<Error>(HasSubstr("states")));
}

// The example of docs/run-directory.md.
TEST(SampleWriter, TheDocumentedPythonExampleWorks) {
  REQUIRE_NUMPY(python);
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  SampleWriter writer(folder / "run/sample_00000.npz", small_layout());
  for (int step = 0; step < 2; ++step) {
    StepData data(step);
    data.columns.assign(120, 0.25F);
    data.columns[40 * 2 + (1 * 4 + 3) * 5 + 4] = 8;  // masked queries, layer 1, head 3, position 4
    SampleStep arrays = data.all();
    arrays.maps.clear();
    writer.append_step(arrays);
  }
  writer.finish(std::vector<std::int32_t>{9, 9, 9, 9, 7});
  const std::string page =
      testing::content_of(std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "docs/run-directory.md");
  const std::size_t begin = page.find("```python\n") + 10;
  std::string example = page.substr(begin, page.find("```", begin) - begin);
  const std::string place = "runs/T0131_120000-S128-L128-B32";
  ASSERT_NE(example.find(place), std::string::npos);
  example.replace(example.find(place), place.size(), "run");
  const auto result = run_python(*python, folder, example);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, ::testing::StartsWith("step 0 layer 1 head 3 key 4 token 0 C 8.5\n"));
}

}  // namespace
}  // namespace sinkscope
