// Interventions as on the command line; what they compute is held against tests/cli/reference.
#include <gmock/gmock.h>
#include <sinkscope/npz.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;

class Intervention : public ::testing::TestWithParam<const char*> {
 protected:
  testing::ProgramResult run(const std::string& name, const std::vector<std::string>& more) const {
    const std::string model = GetParam();
    std::vector<std::string> arguments{"run",       model,       "--prompt",   "How many apples has Lily?",
                                       "--prompt",  "Once",      "--gen-len",  "8",
                                       "--capture", "columns",   "--dtype",    "f32",
                                       "--quiet",   "--run-dir", folder / name};
    if (model == "stories260k") arguments.emplace_back("--raw");
    if (model == "tiny-llada") arguments.insert(arguments.end(), {"--steps", "8", "--block-len", "4"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  std::vector<json> ids_of(const std::string& name) const {
    std::vector<json> ids;
    std::istringstream lines(content_of(folder / (name + "/samples.jsonl")));
    for (std::string line; std::getline(lines, line);) ids.push_back(json::parse(line)["output_ids"]);
    return ids;
  }
  json sink_of(const std::string& name) const {
    return json::parse(content_of(folder / (name + "/run.json")))["sink"];
  }
  TemporaryFolder folder;
};

TEST_P(Intervention, ThatNeverHappensChangesNoToken) {
  ASSERT_EQ(run("plain", {}).status, 0);
  ASSERT_EQ(run("never", {"--sink-top-k", "3", "--sink-steps", "1000"}).status, 0);
  ASSERT_EQ(run("nowhere", {"--sink-top-k", "3", "--epsilon", "1000000"}).status, 0);
  EXPECT_EQ(ids_of("never"), ids_of("plain"));
  EXPECT_EQ(ids_of("nowhere"), ids_of("plain"));
}

TEST_P(Intervention, OfScaleOneIsNoneUpToRounding) {
  ASSERT_EQ(run("plain", {}).status, 0);
  ASSERT_EQ(run("one", {"--sink-top-k", "3", "--sink-action", "scale", "--sink-eta", "1"}).status, 0);
  EXPECT_EQ(ids_of("one"), ids_of("plain"));
}

TEST_P(Intervention, IsNotedInTheRun) {
  const auto result = run("run", {"--sink-top-k", "2", "--sink-control", "random", "--sink-action",
                                  "value-mean", "--sink-layers", "0-1", "--seed", "5"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(sink_of("run")["control"], "random");
  EXPECT_EQ(sink_of("run")["action"], "value-mean");
  const json options = json::parse(content_of(folder / "run/run.json"))["options"];
  EXPECT_EQ(options["sink_layers"], "0-1");
}

// The second pass leaves the run as it is, and an intervention that does nothing has no effect.
TEST_P(Intervention, EffectsAreRecordedBesideTheSameRun) {
  const std::vector<std::string> sinks{"--sink-top-k", "3", "--temperature", "0.5"};
  std::vector<std::string> with = sinks, never = sinks;
  with.emplace_back("--effect");
  never.insert(never.end(), {"--effect", "--sink-steps", "1000"});
  ASSERT_EQ(run("plain", sinks).status, 0);
  ASSERT_EQ(run("effect", with).status, 0);
  ASSERT_EQ(run("never", never).status, 0);
  EXPECT_EQ(ids_of("effect"), ids_of("plain"));
  const NpzFile plain(folder / "plain/sample_00000.npz"), file(folder / "effect/sample_00000.npz"),
      nothing(folder / "never/sample_00000.npz");
  EXPECT_FALSE(plain.contains("effect_kl"));
  const auto known = [](const NpzFile& of, const char* name) {
    std::vector<float> values = of.floats(name);
    std::erase_if(values, [](float value) { return std::isnan(value) || value == 255; });
    return values;
  };
  for (const char* name : {"effect_kl", "effect_confidence", "effect_probability", "removed_mass"}) {
    EXPECT_GT(known(file, name).size(), 0U);
    EXPECT_THAT(known(nothing, name), ::testing::Each(0)) << name;
  }
  EXPECT_THAT(known(file, "effect_kl"), ::testing::Each(::testing::Ge(0)));
  EXPECT_THAT(known(file, "effect_kl"), ::testing::Contains(::testing::Gt(0)));
  EXPECT_THAT(known(file, "removed_mass"), ::testing::Contains(::testing::Gt(0)));
  EXPECT_THAT(known(nothing, "effect_agrees"), ::testing::Each(1));
  EXPECT_EQ(known(file, "effect_agrees").size(), known(file, "effect_kl").size());
}

TEST_P(Intervention, WrongOptionsAreNamedBeforeAnythingIsWritten) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases{
      {{"--sink-control", "some"}, "--sink-control"},
      {{"--sink-layers", "99"}, "--sink-layers names 99"},
      {{"--sink-heads", "0-99"}, "--sink-heads names 99"},
      {{"--sink-steps", "3-1"}, "--sink-steps \"3-1\" is not of the form"},
      {{"--sink-positions", "prompt,all"}, "--sink-positions"},
      {{"--sink-eta", "0.5"}, "--sink-eta is for --sink-action scale"},
      {{"--sink-action", "scale", "--sink-eta", "0"}, "--sink-eta must lie between"},
      {{"--sink-rule", "zscore"}, "zscore"},
      {{"--effect", "--sink-top-k", "0"}, "--effect compares predictions with and without an intervention"}};
  for (const auto& [options, message] : cases) {
    std::vector<std::string> all = options;
    all.insert(all.begin(), {"--sink-top-k", "1"});
    const auto result = run("wrong", all);
    EXPECT_NE(result.status, 0) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder / "wrong"));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Intervention, ::testing::Values("tiny-llada", "stories260k"),
                         [](const auto& model) {
                           return std::string(model.param) == "tiny-llada" ? "diffusion" : "autoregressive";
                         });

TEST(InterventionKinds, RankingsAndResetsBelongToOneKindOfModel) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& model, const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run",       model,          "--prompt",     "a",
                                       "--run-dir", folder / "run", "--sink-top-k", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << model;
    return result.error;
  };
  EXPECT_THAT(refused("tiny-llada", {"--sink-rank", "visible"}),
              HasSubstr("--sink-rank visible is for autoregressive"));
  EXPECT_THAT(refused("stories260k", {"--sink-rank", "own"}),
              HasSubstr("--sink-rank own is for diffusion models; LlamaForCausalLM computes one new query a "
                        "step, of which --sink-rank last takes"));
  EXPECT_THAT(refused("stories260k", {"--sink-reset-at-block"}),
              HasSubstr("--sink-reset-at-block is for LLaDA"));
}

TEST(InterventionKinds, EffectsAreMeasuredAndCompared) {
  const TemporaryFolder folder;
  for (const char* name : {"plain", "masked"}) {
    std::vector<std::string> arguments{"run",         "tiny-llada",  "--prompt", "How many", "--gen-len",
                                       "8",           "--steps",     "8",        "--quiet",  "--run-dir",
                                       folder / name, "--block-len", "4"};
    if (std::string(name) == "masked") arguments.insert(arguments.end(), {"--sink-top-k", "3", "--effect"});
    ASSERT_EQ(run_program(arguments).status, 0);
  }
  const auto measured = run_program({"measure", folder / "masked", "--quiet", "--out", folder / "out"});
  ASSERT_EQ(measured.status, 0) << measured.error;
  EXPECT_THAT(measured.out, HasSubstr("Effect of the masking on predictions of the same state, run 1"));
  const json effect = json::parse(content_of(folder / "out/measure.json"))["pooled"]["effect"];
  EXPECT_EQ(effect["steps"], 7);                // all but the first
  EXPECT_EQ(effect["predictions"], 7 * 8 / 2);  // one mask less at each
  EXPECT_GT(effect["mean_kl"].get<double>(), 0);
  EXPECT_THAT(content_of(folder / "out/effect.csv"), HasSubstr(",mean_kl,removed_mass,4,"));
  const auto compared = run_program({"compare", folder / "plain", folder / "masked", "--quiet"});
  ASSERT_EQ(compared.status, 0) << compared.error;
  EXPECT_THAT(compared.out, HasSubstr("Predictions of b with and without its masking, in the same state"));
  EXPECT_THAT(compared.out, ::testing::Not(HasSubstr("Predictions of a with")));
  const json both =
      json::parse(run_program({"compare", folder / "plain", folder / "masked", "--quiet", "--json"}).out);
  EXPECT_EQ(both["pooled"]["effect"]["b"], effect);
}

TEST(InterventionKinds, RankOwnWritesHowManyQueriesLostAKey) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run",       "tiny-llada",   "--prompt", "How many",    "--gen-len",
                                       "8",         "--steps",      "8",        "--quiet",     "--block-len",
                                       "4",         "--sink-top-k", "2",        "--sink-rank", "own",
                                       "--run-dir", folder / name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.error;
    return content_of(folder / (name + "/sample_00000.npz"));
  };
  const std::string one = run("one", {"--threads", "1"});
  EXPECT_EQ(one, run("two", {"--threads", "2"}));
  EXPECT_NE(one, run("random", {"--sink-control", "random"}));
  const NpzFile file(folder / "one/sample_00000.npz");
  EXPECT_FALSE(file.contains("masked_keys"));
  const NpzArray queries = file.array("queries_without_key");
  EXPECT_EQ(queries.type, ArrayType::uint16);
  EXPECT_EQ(queries.shape.size(), 4U);
  const std::vector<std::int32_t> counts = file.int32s("queries_without_key");
  const std::size_t step = counts.size() / 8;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(step), 0), 0);
  EXPECT_GT(std::accumulate(counts.begin(), counts.end(), 0), 0);
  EXPECT_EQ(json::parse(content_of(folder / "one/run.json"))["options"]["sink_rank"], "own");
}

}  // namespace
}  // namespace sinkscope
