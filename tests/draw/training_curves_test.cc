// Curves of a training run, from its metrics to a table and a picture.
#include "draw/training_curves.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TemporaryFolder;

constexpr const char* metrics =
    R"({"step":0,"probe":{"sink_rate":0.0,"alpha_first":0.1,"massive_ratio":[1.5,2.5]}}
{"step":10,"loss":3.5,"token_loss":3.25,"gradient_norm":1.0,"learning_rate":0.001,"tokens_per_second":100.0}
{"step":20,"loss":2.5,"token_loss":2.25,"gradient_norm":0.5,"learning_rate":0.002,"tokens_per_second":110.0}
{"step":20,"probe":{"sink_rate":0.25,"alpha_first":0.3,"massive_ratio":[1.0,8.0]}}
)";

TEST(TrainingCurves, HoldEveryNumberUnderItsName) {
  const TemporaryFolder folder;
  testing::write_file(folder / "metrics.jsonl", metrics);
  const TrainingCurves curves = read_training_curves(folder / "metrics.jsonl");
  EXPECT_THAT(curves.at("loss"), ElementsAre(Pair(10, 3.5), Pair(20, 2.5)));
  EXPECT_THAT(curves.at("sink_rate"), ElementsAre(Pair(0, 0), Pair(20, 0.25)));
  EXPECT_THAT(curves.at("massive_ratio/1"), ElementsAre(Pair(0, 2.5), Pair(20, 8)));
  EXPECT_FALSE(curves.contains("step"));
}

TEST(TrainingCurves, ThePictureHasItsNumbersBesideIt) {
  const TemporaryFolder folder;
  testing::write_file(folder / "metrics.jsonl", metrics);
  EXPECT_EQ(plot_training(folder / "metrics.jsonl", folder.path()), folder / "training.png");
  EXPECT_THAT(content_of(folder / "training.png"), ::testing::StartsWith("\x89PNG"));
  const std::string table = content_of(folder / "training.csv");
  EXPECT_THAT(table, ::testing::StartsWith("curve,step,value\nalpha_first,0,0.1\nalpha_first,20,0.3\n"));
  EXPECT_THAT(table, HasSubstr("massive_ratio/1,20,8\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 2 * 5 + 2 * 4);
}

TEST(TrainingCurves, ARunThatIsBeingWrittenIsReadSoFar) {
  const TemporaryFolder folder;
  testing::write_file(folder / "metrics.jsonl", std::string(metrics) + "\n{\"step\":30,\"lo");
  EXPECT_THAT(read_training_curves(folder / "metrics.jsonl").at("loss"),
              ElementsAre(Pair(10, 3.5), Pair(20, 2.5)));
}

TEST(TrainingCurves, LinesThatAreWrongAreNamed) {
  const TemporaryFolder folder;
  const auto message_of = [&](const char* content) -> std::string {
    testing::write_file(folder / "metrics.jsonl", content);
    try {
      plot_training(folder / "metrics.jsonl", folder.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message_of("{\"step\":1,\"loss\":2}\n[]\n"),
              HasSubstr("metrics.jsonl line 2 should be an object"));
  EXPECT_THAT(message_of("{\"step\":1,\"loss\":\n"), HasSubstr("metrics.jsonl line 1"));
  EXPECT_THAT(message_of("{\"step\":1,\"loss\":\"2\"}\n"),
              HasSubstr("line 1: loss is a string; null or a number"));
  EXPECT_THAT(message_of("{\"step\":1,\"loss\":1e308}\n"), HasSubstr("line 1: loss is 1e+308"));
  EXPECT_THAT(message_of("{\"step\":1,\"probe\":{\"massive_ratio\":[1,true]}}\n"),
              HasSubstr("line 1: massive_ratio/1 is a boolean"));
  EXPECT_THAT(message_of("{\"step\":2,\"loss\":2}\n{\"step\":1,\"loss\":2}\n"),
              HasSubstr("line 2: step is 1; steps begin at 0 and do not go back"));
  EXPECT_THAT(message_of(""), HasSubstr("holds no numbers yet"));
  EXPECT_FALSE(std::filesystem::exists(folder / "training.png"));
  EXPECT_THROW(read_training_curves(folder / "nothing.jsonl"), Error);
}

}  // namespace
}  // namespace sinkscope
