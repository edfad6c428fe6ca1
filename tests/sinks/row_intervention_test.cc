#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::uint8_t prompt = 0, decoded = 1, masked = 2;

// One head of two queries, at positions 1 and 2 of six.
struct Step {
  std::vector<std::int32_t> most{4, 0, 2, 5, no_key, no_key};
  std::vector<std::int32_t> least{1, 3, 5, 2, 0, 4, 0, 4, 5, 1, 2, 3};
  std::vector<std::uint8_t> classes{prompt, prompt, decoded, decoded, masked, masked};

  StepRows rows(std::int64_t step = 3) const { return {most, least, classes, 3, 1, 2, 1, step}; }
};

InterventionOptions options() {
  InterventionOptions o;
  o.top_k = 3;
  o.rank = SinkRank::own;
  return o;
}

DrawUniform stream(std::vector<double> numbers) {
  auto next = std::make_shared<std::size_t>(0);
  return [numbers, next] {
    if (*next == numbers.size()) throw Error("more was drawn than there was");
    return numbers[(*next)++];
  };
}

TEST(RowIntervention, ListsGoAsTheyAreAndAreCounted) {
  const RemovedRowKeys removed = choose_removed_row_keys(Step().rows(), options());
  EXPECT_THAT(removed.keys, ElementsAre(4, 0, 2, 5, no_key, no_key));
  EXPECT_THAT(removed.queries, ElementsAre(1, 0, 1, 0, 1, 1));
  EXPECT_EQ(removed.count, 4);
  EXPECT_EQ(removed.missing, 0);
}

TEST(RowIntervention, AShareOfEachListIsKept) {
  InterventionOptions o = options();
  o.mask_sink_ratio = 0.5;
  EXPECT_THAT(choose_removed_row_keys(Step().rows(), o).keys, ElementsAre(4, 0, no_key, 5, no_key, no_key));
}

TEST(RowIntervention, KeysMustBeOfANamedClassNow) {
  InterventionOptions o = options();
  o.classes = 1 << prompt | 1 << decoded;
  EXPECT_THAT(choose_removed_row_keys(Step().rows(), o).keys,
              ElementsAre(0, 2, no_key, no_key, no_key, no_key));
}

TEST(RowIntervention, HappensInTheNamedPlacesAndStepsOnly) {
  InterventionOptions o = options();
  o.steps = {{{4, 9}}};
  EXPECT_EQ(choose_removed_row_keys(Step().rows(), o).count, 0);
  EXPECT_EQ(choose_removed_row_keys(Step().rows(4), o).count, 4);
  o.heads = {{{1, 1}}};
  EXPECT_EQ(choose_removed_row_keys(Step().rows(4), o).count, 0);
  o = options();
  o.layers = {{{1, 1}}};
  EXPECT_EQ(choose_removed_row_keys(Step().rows(), o).count, 0);
}

TEST(RowIntervention, RandomOnesAreDrawnFromWhatIsLeft) {
  InterventionOptions o = options();
  o.control = SinkControl::random;
  // Others of query 1: 1, 3, 5; of query 2: 0 to 4.
  const RemovedRowKeys removed = choose_removed_row_keys(Step().rows(), o, stream({0.5, 0.99, 0, 0.45}));
  EXPECT_THAT(removed.keys, ElementsAre(3, 5, 1, 2, no_key, no_key));
  o.exclude_self = true;  // without 1 there are two; query 2 has 0, 1, 3, 4
  const RemovedRowKeys without = choose_removed_row_keys(Step().rows(), o, stream({0.5, 0, 0.75}));
  EXPECT_THAT(without.keys, ElementsAre(5, 3, no_key, 4, no_key, no_key));
  EXPECT_EQ(without.missing, 1);
}

TEST(RowIntervention, MatchedOnesAreOfTheSameClass) {
  InterventionOptions o = options();
  o.control = SinkControl::matched;
  const RemovedRowKeys removed = choose_removed_row_keys(Step().rows(), o, stream({0.9, 0.9, 0.9, 0.9}));
  EXPECT_THAT(removed.keys, ElementsAre(1, 3, 5, 4, no_key, no_key));
}

TEST(RowIntervention, BottomOnesAreTheLeastThatWereNotPicked) {
  InterventionOptions o = options();
  o.control = SinkControl::bottom;
  EXPECT_THAT(choose_removed_row_keys(Step().rows(), o).keys, ElementsAre(1, 3, 5, 0, no_key, no_key));
  o.classes = 1 << decoded | 1 << masked;
  const RemovedRowKeys fewer = choose_removed_row_keys(Step().rows(), o);
  EXPECT_THAT(fewer.keys, ElementsAre(3, 5, no_key, 4, no_key, no_key));
}

TEST(RowIntervention, WhatIsNoListIsRefused) {
  Step step;
  step.most[1] = 6;
  EXPECT_THAT([&] { choose_removed_row_keys(step.rows(), options()); },
              ThrowsMessage<Error>(HasSubstr("key 6 of 6")));
  step = {};
  step.most.pop_back();
  EXPECT_THROW(choose_removed_row_keys(step.rows(), options()), Error);
  step = {};
  step.least.clear();
  EXPECT_EQ(choose_removed_row_keys(step.rows(), options()).count, 4);
  InterventionOptions o = options();
  o.control = SinkControl::bottom;
  EXPECT_THROW(choose_removed_row_keys(step.rows(), o), Error);
  step = {};
  step.classes[2] = 3;
  EXPECT_THROW(choose_removed_row_keys(step.rows(), options()), Error);
}

TEST(RowIntervention, AsksForWhatItNeeds) {
  InterventionOptions o = options();
  o.epsilon = 3;
  o.scale = SinkScale::percent;
  std::vector<std::uint8_t> listed;
  const Step step;
  RowRequest request = row_request(o, step.classes, listed);
  EXPECT_EQ(request.most, 3);
  EXPECT_EQ(request.least, 0);
  EXPECT_EQ(request.listed, nullptr);
  EXPECT_FALSE(request.on_sums);
  EXPECT_DOUBLE_EQ(request.epsilon, 0.03);
  o.control = SinkControl::bottom;
  o.classes = 1 << masked;
  request = row_request(o, step.classes, listed);
  EXPECT_EQ(request.least, 6);
  EXPECT_EQ(request.listed, listed.data());
  EXPECT_THAT(listed, ElementsAre(0, 0, 0, 0, 1, 1));
}

}  // namespace
}  // namespace sinkscope
