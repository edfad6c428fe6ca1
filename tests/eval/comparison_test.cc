#include "eval/comparison.h"

#include <gtest/gtest.h>

#include "eval/result_files.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

CellLines cell_of(const Cell& cell, const std::vector<double>& scores) {
  std::vector<OrderedJson> lines;
  for (std::size_t i = 0; i < scores.size(); ++i)
    lines.push_back(
        {{"doc_id", i}, {"filter", "none"}, {"metrics", {"exact_match"}}, {"exact_match", scores[i]}});
  return {cell, {{"task", lines}}};
}

TEST(Comparison, PairsEveryCellWithNothingMaskedAndWithItsControls) {
  const std::vector<CellLines> cells{
      cell_of({"plain", 0, "", "none"}, {1, 1, 1, 1, 0, 1, 1, 1}),
      cell_of({"columns-1", 1, "columns", "none"}, {0, 0, 0, 0, 0, 0, 1, 1}),
      cell_of({"columns-1-random", 1, "columns", "random"}, {1, 1, 1, 1, 1, 1, 0, 1})};
  const OrderedJson table = comparison_table(cells, 1000, 0);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_TRUE(table[0]["against_plain"].is_null());
  EXPECT_TRUE(table[0]["rank"].is_null());
  EXPECT_DOUBLE_EQ(table[1]["value"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(table[1]["against_plain"]["difference"].get<double>(), -0.625);
  EXPECT_EQ(table[1]["against_plain"]["only_this"], 0);
  EXPECT_EQ(table[1]["against_plain"]["only_other"], 5);
  EXPECT_DOUBLE_EQ(table[1]["against_plain"]["p"].get<double>(), 2.0 / 32);  // 5 of 5 to one side
  ASSERT_EQ(table[1]["against_controls"].size(), 1U);
  EXPECT_EQ(table[1]["against_controls"][0]["control"], "random");
  EXPECT_DOUBLE_EQ(table[1]["against_controls"][0]["difference"].get<double>(), -0.625);
  EXPECT_TRUE(table[2]["against_controls"].is_null());
}

TEST(Comparison, OnlyProblemsThatBothHaveCount) {
  const std::vector<CellLines> cells{cell_of({"plain", 0, "", "none"}, {1, 1, 1}),
                                     cell_of({"last-1", 1, "last", "none"}, {0, 0})};
  EXPECT_EQ(comparison_table(cells, 100, 0)[1]["against_plain"]["samples"], 2);
}

TEST(Comparison, ScoresBetweenZeroAndOneHaveAnIntervalAndNoP) {
  const std::vector<CellLines> cells{cell_of({"plain", 0, "", "none"}, {0.5, 0.25}),
                                     cell_of({"last-1", 1, "last", "none"}, {0.25, 0.25})};
  const OrderedJson compared = comparison_table(cells, 100, 0)[1]["against_plain"];
  EXPECT_TRUE(compared["p"].is_null());
  EXPECT_TRUE(compared["interval"].is_array());
}

TEST(Comparison, TheCsvHasALineForEveryControl) {
  const std::vector<CellLines> cells{cell_of({"plain", 0, "", "none"}, {1, 1}),
                                     cell_of({"own-5", 5, "own", "none"}, {0, 1}),
                                     cell_of({"own-5-random", 5, "own", "random"}, {1, 1}),
                                     cell_of({"own-5-bottom", 5, "own", "bottom"}, {1, 1})};
  const std::string csv = table_csv(comparison_table(cells, 100, 0));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 1 + 2 + 1 + 1);
}

}  // namespace
}  // namespace sinkscope
