#include "sampling/row_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr float none = 0.0F;

// One layer and head, four positions of which the first is the prompt.
RowStep whole_step() {
  return {.layers = 1, .heads = 1, .classes = {0, 2, 2, 2}, .first = 0, .last = 4, .number = 1, .room = 1};
}

InterventionOptions masking_one() {
  InterventionOptions options;
  options.top_k = 1;
  return options;
}

at::Tensor lists_of(const std::vector<std::int32_t>& keys) {
  return at::tensor(keys, at::kInt).reshape({1, 1, static_cast<std::int64_t>(keys.size()), 1});
}

TEST(RowMemory, LosesNothingBeforeAStepWasSeen) {
  RowMemory row;
  RandomStream control(1);
  EXPECT_EQ(choose_removed(row, whole_step(), masking_one(), control), 0);
  EXPECT_THAT(row.removed, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(choose_removed_for(row, whole_step(), masking_one(), control), 0);
  EXPECT_TRUE(row.removed_for.keys.empty());
  EXPECT_THAT(row.removed_for.queries, ElementsAre(0, 0, 0, 0));
}

// The last row counts as if all queries attended alike: its sums are S, as those of columns are.
TEST(RowMemory, TakesTheLastRowForColumnSums) {
  RowMemory row;
  Observation seen;
  seen.last_row = at::tensor({none, none, 0.5F, 0.125F, 0.125F, 0.25F}).reshape({1, 1, 6});
  remember_last_row(row, /*first_key=*/2, /*length=*/4, seen);
  EXPECT_TRUE(at::equal(row.columns.flatten(), at::tensor({2.0F, 0.5F, 0.5F, 1.0F})));
  EXPECT_TRUE(at::equal(row.diagonal.flatten(), at::tensor({none, none, none, 1.0F})));
  RandomStream control(1);
  choose_removed(row, whole_step(), masking_one(), control);
  EXPECT_THAT(row.removed, ElementsAre(1, 0, 0, 0));
}

// With a cache a step computes some positions; the others keep what they attended before.
TEST(RowMemory, KeepsTheListsOfPositionsThatAStepDoesNotCompute) {
  RowMemory row;
  Observation seen;
  seen.row_most = lists_of({3, 3, 3, 3});
  remember_lists(row, whole_step(), 0, seen);
  RowStep part = whole_step();
  part.first = 1, part.last = 3;
  seen.row_most = lists_of({7, 0, 1});  // the first token is another row's
  remember_lists(row, part, /*first_token=*/1, seen);
  const std::vector<std::int32_t> kept(row.most.data_ptr<std::int32_t>(),
                                       row.most.data_ptr<std::int32_t>() + 4);
  EXPECT_THAT(kept, ElementsAre(3, 0, 1, 3));
  RandomStream control(1);
  choose_removed_for(row, part, masking_one(), control);
  EXPECT_THAT(row.removed_for.keys, ElementsAreArray({0, 1}));
  EXPECT_THAT(row.removed_for.queries, ElementsAre(1, 1, 0, 0));
}

TEST(RowMemory, ForgetsAtABlock) {
  RowMemory row;
  Observation seen;
  seen.row_most = lists_of({3, 3, 3, 3});
  remember_lists(row, whole_step(), 0, seen);
  row.columns = at::tensor({2.0F, 0.5F, 0.5F, 1.0F}).reshape({1, 1, 4});
  row.diagonal = at::zeros_like(row.columns);
  RowStep step = whole_step();
  step.forgets = true;
  RandomStream control(1);
  choose_removed(row, step, masking_one(), control);
  choose_removed_for(row, step, masking_one(), control);
  EXPECT_THAT(row.removed, ElementsAre(0, 0, 0, 0));
  EXPECT_TRUE(row.removed_for.keys.empty());
}

}  // namespace
}  // namespace sinkscope
