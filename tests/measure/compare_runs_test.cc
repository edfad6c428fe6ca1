#include "measure/compare_runs.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "measure/statistics.h"
#include "support/planted_trajectory.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::growing;
using ::testing::HasSubstr;
using testing::opening;
using testing::PlantedTrajectory;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::TrajectoryRun;
using testing::write_file;

const PlantedTrajectory forwards = opening({11, 12, 13, 14}, {{0}, {1}, {2}, {3}});
const PlantedTrajectory backwards = opening({11, 12, 13, 14}, {{3}, {2}, {1}, {0}});
const PlantedTrajectory other_token = opening({11, 12, 77, 14}, {{0}, {1}, {2}, {3}});

// The same with another prompt.
PlantedTrajectory asked_otherwise(PlantedTrajectory sample) {
  for (auto& state : sample.states) state[1] = 7;
  return sample;
}

class CompareRuns : public ::testing::Test {
 protected:
  ordered_json compare(const CompareOptions& options = {}) {
    notes.clear();
    CompareCallbacks callbacks;
    callbacks.note = [&](const std::string& line) { notes.push_back(line); };
    return compare_runs(a.end(), b.end(), options, callbacks);
  }
  TemporaryFolder folder;
  TrajectoryRun a{folder / "a"}, b{folder / "b"};
  std::vector<std::string> notes;
};

TEST_F(CompareRuns, PoolsWhatTheSamplesHave) {
  a.add(0, forwards);
  a.add(1, forwards);
  a.add(2, forwards);
  b.add(2, backwards);  // in another order
  b.add(0, forwards);
  b.add(1, other_token);
  const ordered_json compared = compare(), &pooled = compared["pooled"];
  EXPECT_EQ(compared["kind"], "diffusion");
  EXPECT_EQ(compared["samples"][1]["index"], 1);
  EXPECT_EQ(compared["samples"][1]["parts_at"], 3);
  EXPECT_EQ(compared["samples"][1]["share_equal"], 0.75);
  EXPECT_TRUE(compared["samples"][0]["parts_at"].is_null());
  EXPECT_EQ(compared["samples"][2]["kendall_tau"], -1);
  EXPECT_TRUE(compared["samples"][0]["tokens"].is_null());
  EXPECT_EQ(pooled["samples"], 3);
  EXPECT_EQ(pooled["outputs_equal"], 2);
  EXPECT_EQ(pooled["equal"], 11);
  EXPECT_EQ(pooled["positions"], 12);
  EXPECT_EQ(pooled["share_equal"], 11.0 / 12);
  EXPECT_EQ(pooled["mean_first_difference"], 2);
  EXPECT_EQ(pooled["parted"], 2);
  EXPECT_EQ(pooled["mean_parts_at"], 2) << "of steps 3 and 1";
  EXPECT_EQ(pooled["kendall_tau"], 1.0 / 3);
  EXPECT_EQ(pooled["confidence"]["before_parting"]["candidates"], 10 + 9 + 4);
  EXPECT_TRUE(pooled["confidence"]["keys_masked"].is_null());
  EXPECT_TRUE(pooled["exact_match"].is_null());
  EXPECT_TRUE(notes.empty());
}

TEST_F(CompareRuns, LeavesOutSamplesWithoutAPartner) {
  for (const int index : {0, 1, 4}) a.add(index, forwards);
  b.add(0, forwards);
  b.add(1, asked_otherwise(forwards));
  b.add(7, forwards);
  const ordered_json compared = compare();
  EXPECT_EQ(compared["pooled"]["samples"], 1);
  EXPECT_EQ(compared["left_out"], ordered_json({{{"index", 1}, {"reason", "different prompts"}},
                                                {{"index", 4}, {"reason", "only in a"}},
                                                {{"index", 7}, {"reason", "only in b"}}}));
  EXPECT_THAT(notes, ElementsAre("samples left out: different prompts: 1; only in a: 4; only in b: 7"));
}

TEST_F(CompareRuns, WithoutACommonSampleAreRefused) {
  a.add(0, forwards);
  b.add(0, asked_otherwise(forwards));
  EXPECT_THAT([&] { compare(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no sample of the same index and prompt"),
                                         HasSubstr("different prompts: 0"))));
}

TEST_F(CompareRuns, OfDifferentPromptLengthsHaveDifferentPrompts) {
  PlantedTrajectory longer = forwards;
  longer.prompt_length = 3;
  a.add(0, forwards);
  b.add(0, longer);
  EXPECT_THAT([&] { compare(); }, ThrowsMessage<Error>(HasSubstr("different prompts: 0")));
}

TEST_F(CompareRuns, ScoresTextsAgainstReferences) {
  // Right in both, in a alone, three times in b alone, in none; one without a reference in b, and one whose
  // references differ.
  auto add = [&, index = 0](const char* text_a, const char* text_b) mutable {
    a.add(index, forwards, text_a, "yes ");
    b.add(index++, forwards, text_b, "yes ");
  };
  add("yes", " yes\n");
  add("yes", "no");
  for (int i = 0; i < 3; ++i) add("y e s", "yes");
  add("", "no");
  a.add(10, forwards, "yes", "yes");
  b.add(10, forwards, "yes");
  a.add(11, forwards, "yes", "yes");
  b.add(11, forwards, "yes", "no");
  const ordered_json compared = compare(), &match = compared["pooled"]["exact_match"];
  EXPECT_EQ(match["samples"], 6);
  EXPECT_EQ(match["a"]["right"], 2);
  EXPECT_EQ(match["b"]["right"], 4);
  EXPECT_DOUBLE_EQ(match["a"]["standard_error"], std::sqrt(2.0 / 6 * 4 / 6 / 5));
  EXPECT_EQ(match["only_a"], 1);
  EXPECT_EQ(match["only_b"], 3);
  EXPECT_EQ(match["difference"], 2.0 / 6);
  EXPECT_DOUBLE_EQ(match["mcnemar_p"], 2 * (1 + 4) / 16.0);
  EXPECT_LT(match["interval"][0], 2.0 / 6);
  EXPECT_GT(match["interval"][1], 2.0 / 6);
  EXPECT_EQ(compared["samples"][1]["exact_match"], ordered_json({{"a", true}, {"b", false}}));
  EXPECT_TRUE(compared["samples"][6]["exact_match"].is_null());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("different references: 11")));
}

TEST_F(CompareRuns, GivesAnIntervalToTheChangeWhereKeysWereMasked) {
  std::vector<double> confidence_a, confidence_b;
  for (const double change : {0.25, 0.125, -0.0625}) {
    PlantedTrajectory masking = forwards;
    masking.masked_keys = {{0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
    masking.confidence[1][4] += static_cast<float>(change);
    const auto index = static_cast<std::int64_t>(confidence_a.size());
    a.add(index, forwards);
    b.add(index, masking);
    confidence_a.push_back(0.5);
    confidence_b.push_back(0.5 + change / 5);  // candidates: 3 at step 1, 2 at step 2
  }
  const ordered_json keys = compare({500, 3})["pooled"]["confidence"]["keys_masked"];
  EXPECT_EQ(keys["steps"], 6);
  EXPECT_EQ(keys["masked_keys"], 6);
  EXPECT_EQ(keys["candidates"], 15);
  EXPECT_EQ(keys["samples"], 3);
  EXPECT_NEAR(keys["mean_change_of_samples"], 0.3125 / 15, 1e-15);
  const Interval interval = *paired_bootstrap(confidence_a, confidence_b, 500, 3);
  EXPECT_NEAR(keys["interval"][0], interval.low, 1e-15);
  EXPECT_NEAR(keys["interval"][1], interval.high, 1e-15);
}

TEST_F(CompareRuns, OfAutoregressiveModels) {
  TrajectoryRun one(folder / "one", std::nullopt), other(folder / "other", std::nullopt);
  one.add(0, growing({5, 6, 7, 8}, 6));
  other.add(0, growing({5, 9, 7}, 6));
  const ordered_json compared = compare_runs(one.end(), other.end(), {}, {});
  const ordered_json& sample = compared["samples"][0];
  EXPECT_EQ(compared["kind"], "autoregressive");
  EXPECT_EQ(sample["tokens"], ordered_json({{"a", 4}, {"b", 3}}));
  EXPECT_EQ(sample["first_difference"], 1);
  EXPECT_EQ(sample["share_equal"], 0.5);
  for (const char* none : {"parts_at", "kendall_tau"}) EXPECT_TRUE(sample[none].is_null()) << none;
  for (const auto& [name, change] : sample["confidence"].items()) EXPECT_TRUE(change.is_null()) << name;
  for (const char* none : {"parted", "mean_parts_at", "kendall_tau", "kendall_tau_samples"})
    EXPECT_TRUE(compared["pooled"][none].is_null()) << none;
}

TEST_F(CompareRuns, OfDifferentKindsAreRefused) {
  TrajectoryRun autoregressive(folder / "ar", std::nullopt), other_mask(folder / "other", 98);
  EXPECT_THAT(
      [&] {
        a.add(0, forwards);
        autoregressive.add(0, growing({5}, 4));
        compare_runs(a.end(), autoregressive.end(), {}, {});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("diffusion"), HasSubstr("autoregressive"))));
  other_mask.add(0, forwards);
  EXPECT_THAT([&] { compare_runs(a.end(), other_mask.end(), {}, {}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("mask id 99"), HasSubstr("98"))));
}

TEST_F(CompareRuns, ThatAreBrokenAreNamed) {
  a.add(0, forwards);
  EXPECT_THAT([&] { compare(); }, ThrowsMessage<Error>(HasSubstr("b has no finished sample")));
  b.add(0, forwards);
  write_file(folder / "b/sample_00000.npz", "no archive");
  EXPECT_THAT([&] { compare(); }, ThrowsMessage<Error>(HasSubstr("b/sample_00000.npz")));
  EXPECT_THAT([&] { compare_runs(folder / "a", folder / "nowhere", {}, {}); },
              ThrowsMessage<Error>(HasSubstr("nowhere is no run directory")));
}

TEST_F(CompareRuns, ThatWereInterruptedAreComparedAsFarAsTheyGot) {
  a.add(0, forwards);
  b.add(0, forwards);
  std::vector<std::string> lines;
  CompareCallbacks callbacks;
  callbacks.note = [&](const std::string& line) { lines.push_back(line); };
  compare_runs(a.end(), folder / "b", {}, callbacks);
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("b was interrupted"), HasSubstr("1 finished samples"))));
}

TEST_F(CompareRuns, AsATableHaveALineForEachSample) {
  a.add(0, forwards, "yes", "yes");
  b.add(0, other_token, "no", "yes");
  const ordered_json compared = compare();
  const CsvTable table = compared_samples(compared);
  EXPECT_EQ(table.file, "samples.csv");
  EXPECT_THAT(table.content,
              ::testing::StartsWith("run_a,run_b,index,steps_a,steps_b,tokens_a,tokens_b,outputs_equal,"
                                    "positions,equal,share_equal,first_difference,parts_at,kendall_tau,"
                                    "confidence_before_parting_candidates,"));
  const std::string runs = (folder / "a").string() + "," + (folder / "b").string();
  EXPECT_THAT(table.content,
              HasSubstr("\n" + runs + ",0,4,4,,,false,4,3,0.75,2,3,1.0,9,0.5,0.5,0.0,0.0,0.0,"));
  EXPECT_THAT(table.content, ::testing::EndsWith(",,,,,,,,true,false\n")) << "b masked no keys";
}

}  // namespace
}  // namespace sinkscope
