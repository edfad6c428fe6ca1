#include "train/trainer.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "base/folder_lock.h"
#include "ops/parallel.h"
#include "train/small_run.h"
#include "train/training_checkpoint.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string weights_of(const std::filesystem::path& run) {
  return testing::content_of(run / "latest/model.safetensors");
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

class TrainerTest : public ::testing::TestWithParam<const char*> {
 protected:
  TrainerTest() { small.config["objective"] = GetParam(); }
  SmallRun small;
};

TEST_P(TrainerTest, LearnsByHeart) {
  small.config["steps"] = 150;
  small.config["data"]["answer_only"] = false;
  train(small.read(), {small.run()});
  const auto lines = lines_of(small.run() / "metrics.jsonl");
  EXPECT_GT(lines[1]["loss"], 4);  // of 259 tokens: 5.6 nats
  EXPECT_LT(lines.back().contains("loss") ? lines.back()["loss"] : lines[lines.size() - 2]["loss"], 2.5);
}

TEST_P(TrainerTest, WhereverItStopsItGoesOnToTheSameWeights) {
  const TrainConfig config = small.read();
  train(config, {small.run()});
  for (const int stop_behind : {1, 4, 7}) {
    const std::filesystem::path run = small.folder / std::to_string(stop_behind);
    std::atomic<bool> stop = false;
    TrainConfig logged = config;
    logged.log_every = 1;
    TrainingRun first{run};
    first.stepped = [&](const StepReport& report) { stop = report.step == stop_behind; };
    first.stop = &stop;
    const TrainingEnd stopped = train(logged, first);
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.step, stop_behind);
    TrainingRun second{run};
    second.resume = true;
    EXPECT_TRUE(train(config, second).finished);
    EXPECT_EQ(weights_of(run), weights_of(small.run())) << stop_behind;
  }
}

TEST_P(TrainerTest, TheWeightsDoNotDependOnTheThreads) {
  small.config["batch"] = 9;  // no multiple of anything
  const TrainConfig config = small.read();
  const int threads = thread_count();
  train(config, {small.folder / "all"});
  set_thread_count(threads == 1 ? 3 : 1);
  train(config, {small.folder / "other"});
  set_thread_count(threads);
  EXPECT_EQ(weights_of(small.folder / "all"), weights_of(small.folder / "other"));
}

INSTANTIATE_TEST_SUITE_P(Objectives, TrainerTest, ::testing::Values("masked-diffusion", "autoregressive"),
                         [](const auto& test) {
                           return test.param[0] == 'm' ? "diffusion" : "autoregressive";
                         });

TEST(Trainer, LossesAreMeansOverPassesThatAskedForSomething) {
  SmallRun small;  // a prefix of 15 leaves nothing to ask for in the shorter texts
  small.config["objective"] = "prefix-lm";
  small.config["prefix"] = 15;
  small.config["batch"] = 1;
  small.config["log_every"] = 1;
  small.config["probe"] = {{"every", 0}};
  train(small.read(), {small.run()});
  int asked = 0, silent = 0;
  for (const auto& line : lines_of(small.run() / "metrics.jsonl")) {
    (line["loss"].is_null() ? silent : asked) += 1;
    if (!line["loss"].is_null()) {
      EXPECT_GT(line["loss"].get<double>(), 1);
    }
  }
  EXPECT_GT(asked, 0);
  EXPECT_GT(silent, 0);
}

TEST(Trainer, DataThatAsksForNothingIsRefused) {
  SmallRun small;
  small.config["objective"] = "prefix-lm";
  small.config["prefix"] = 31;
  EXPECT_THAT([&] { train(small.read(), {small.run()}); },
              ThrowsMessage<Error>(HasSubstr("in no text is there a token to learn")));
  EXPECT_FALSE(std::filesystem::exists(small.run()));
}

TEST(Trainer, ARunKilledBeforeItsFirstCheckpointProbesStepZeroOnce) {
  SmallRun small;
  std::atomic<bool> stop{false};
  TrainingRun first{small.run()};
  first.stop = &stop;
  first.stepped = [&](const StepReport&) { stop = true; };
  train(small.read(), first);
  std::filesystem::remove_all(small.run() / "checkpoints");
  std::filesystem::remove(small.run() / "latest");
  train(small.read(), {small.run(), true});
  std::vector<std::int64_t> probes;
  for (const auto& line : lines_of(small.run() / "metrics.jsonl"))
    if (line.contains("probe")) probes.push_back(line["step"]);
  EXPECT_THAT(probes, ElementsAre(0, 6, 12));
}

TEST(Trainer, LeavesWhatItSays) {
  SmallRun small;
  small.config["weights"] = "bf16";
  train(small.read(), {small.run()});
  const auto lines = lines_of(small.run() / "metrics.jsonl");
  std::vector<std::int64_t> steps, probes;
  for (const auto& line : lines) (line.contains("probe") ? probes : steps).push_back(line["step"]);
  EXPECT_THAT(steps, ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(probes, ElementsAre(0, 6, 12));
  EXPECT_EQ(lines.front()["probe"]["massive_ratio"].size(), 2U);
  EXPECT_THAT(resumable_steps(small.run()), ElementsAre(12));  // older models stay, their states go
  EXPECT_TRUE(std::filesystem::exists(checkpoint_folder(small.run(), 4) / "model.safetensors"));
  const auto checkpoint = std::make_shared<Checkpoint>(Checkpoint::open(small.run() / "latest"));
  EXPECT_EQ(checkpoint->config().weights_dtype, DType::bf16);
  EXPECT_EQ(checkpoint->config().mask_id, 2);
  EXPECT_NO_THROW(Transformer(checkpoint, {}));
}

TEST(Trainer, TheAverageOfTheWeightsIsWritten) {
  SmallRun small;
  train(small.read(), {small.folder / "plain"});
  small.config["optimizer"]["ema"] = 0.5;
  train(small.read(), {small.folder / "averaged"});
  EXPECT_NE(weights_of(small.folder / "plain"), weights_of(small.folder / "averaged"));
  const SafetensorsFile plain(small.folder / "plain/latest/training_state.safetensors");
  const SafetensorsFile averaged(small.folder / "averaged/latest/training_state.safetensors");
  const SafetensorsFile model(small.folder / "averaged/latest/model.safetensors");
  const auto text = [](const TensorView& view) {
    return std::string(static_cast<const char*>(static_cast<const void*>(view.bytes.data())),
                       view.bytes.size());
  };
  const std::string norm = "model.transformer.ln_f.weight";
  EXPECT_EQ(text(plain.tensor("weight:" + norm)), text(averaged.tensor("weight:" + norm)));
  EXPECT_EQ(text(model.tensor(norm)), text(averaged.tensor("average:" + norm)));
}

TEST(Trainer, AFolderOfAnotherRunIsLeftAlone) {
  SmallRun small;
  const auto begin = [&](bool resume) {
    TrainingRun run{small.run()};
    run.resume = resume;
    train(small.read(), run);
  };
  begin(false);
  EXPECT_THAT([&] { begin(false); },
              ThrowsMessage<Error>(HasSubstr("holds a run already; --resume goes on")));
  small.config["seed"] = 2;
  EXPECT_THAT([&] { begin(true); }, ThrowsMessage<Error>(HasSubstr("differs from it")));
  std::filesystem::create_directory(small.folder / "full");
  std::filesystem::create_directory(small.folder / "full/tokenizer");
  testing::write_file(small.folder / "full/letter", "dear");
  EXPECT_THAT([&] { train(small.read(), {small.folder / "full"}); },
              ThrowsMessage<Error>(HasSubstr("is not empty and holds no training run")));
  EXPECT_THAT(testing::names_in(small.folder / "full"), ElementsAre("letter", "tokenizer"));
  EXPECT_THAT(testing::names_in(small.run()), ::testing::Contains("latest"));
}

TEST(Trainer, ARunKilledBeforeItsFirstFileWasWholeBeginsAnew) {
  SmallRun small;
  std::filesystem::create_directory(small.run());
  testing::write_file(small.run() / "training.json.tmp", "{\"obj");
  TrainingRun run{small.run()};
  run.resume = true;
  train(small.read(), run);
  EXPECT_THAT(testing::names_in(small.run()), ::testing::Contains("latest"));
  EXPECT_FALSE(std::filesystem::exists(small.run() / "training.json.tmp"));
}

TEST(Trainer, TwoProcessesDoNotTrainInOneFolder) {
  SmallRun small;
  train(small.read(), {small.run()});
  const FolderLock other(small.run());
  TrainingRun run{small.run()};
  run.resume = true;
  EXPECT_THAT([&] { train(small.read(), run); },
              ThrowsMessage<UsageError>(HasSubstr("another process is writing ")));
  EXPECT_THAT(testing::names_in(small.run()), ::testing::Contains("latest"));
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheRun) {
  SmallRun small;
  small.config["steps"] = 400;
  small.config["optimizer"] = {{"learning_rate", 10}, {"warmup", 0}, {"clip", 1e9}, {"weight_decay", 90}};
  EXPECT_THAT([&] { train(small.read(), {small.run()}); },
              ThrowsMessage<Error>(HasSubstr("the loss is not finite in step ")));
}

}  // namespace
}  // namespace sinkscope
