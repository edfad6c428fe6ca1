// What belongs to one kind of model only, through the command line.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::string golden = SINKSCOPE_TEST_DATA "/golden/";

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(Families, OptionsOfAnotherKindOfModelAreRefusedByName) {
  const struct {
    std::string model;
    std::vector<std::string> options;
    std::string message;
  } cases[] = {
      {"tiny-llada", {"--alg", "entropy"}, "--alg is for Dream; LLaDAModelLM is not one of them"},
      {"tiny-llada", {"--top-k", "5"}, "--top-k is for Dream and autoregressive models"},
      {"tiny-llada", {"--stop", "x"}, "--stop is for autoregressive models"},
      {golden + "dream-random", {"--cfg", "1"}, "--cfg is for LLaDA and MMaDA; DreamModel"},
      {golden + "llama-random", {"--steps", "8"}, "--steps is for diffusion models; LlamaForCausalLM"},
      {golden + "llama-random", {"--cache", "dual"}, "--cache is for diffusion models"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments{"run", c.model, "--prompt-ids", "1,2"};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.error, HasSubstr(c.message));
  }
}

TEST(Families, TheFolderOfARunTellsWhatItsSamplerHas) {
  const TemporaryFolder folder;
  for (const std::string model : {"dream-random", "llama-random"}) {
    std::vector<std::string> arguments{"run", golden + model, "--prompt-ids", "1,2",    "--gen-len",
                                       "4",   "--out",        folder / model, "--quiet"};
    if (model == "dream-random") arguments.insert(arguments.end(), {"--steps", "2"});
    ASSERT_EQ(run_program(arguments).status, 0);
    const std::string name = std::filesystem::directory_iterator(folder / model)->path().filename().string();
    EXPECT_THAT(name, ::testing::EndsWith(model == "dream-random" ? "-S2-L4" : "-L4"));
    if (model == "llama-random") {
      EXPECT_EQ(name.find("-S"), std::string::npos);
    }
  }
}

TEST(Families, AnAutoregressiveRunHasNoMaskId) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run_program({"run", golden + "llama-random", "--prompt-ids", "1,2,3", "--prompt-ids", "4", "--gen-len",
                   "5", "--ignore-eos", "--batch", "2", "--run-dir", folder / "run", "--quiet"})
          .status,
      0);
  const json info = json::parse(content_of(folder / "run/run.json"));
  EXPECT_TRUE(info["model"]["mask_id"].is_null());
  EXPECT_EQ(info["model"]["family"], "llama");
  const std::vector<json> samples = lines_of(content_of(folder / "run/samples.jsonl"));
  ASSERT_EQ(samples.size(), 2U);
  for (const json& sample : samples) {
    EXPECT_EQ(sample["steps"], 5);
    EXPECT_EQ(sample["forward_passes"], 5);
    EXPECT_EQ(sample["output_ids"].size(), 5U);
  }
}

// What was interrupted goes on, and ends with the bytes of a run that was not.
TEST(Families, AnAutoregressiveRunResumes) {
  const TemporaryFolder folder;
  const auto arguments = [&](const std::string& name, const std::string& samples) {
    return std::vector<std::string>{"run",           golden + "llama-random",
                                    "--prompt-ids",  "1,2,3",
                                    "--prompt-ids",  "4",
                                    "--gen-len",     "5",
                                    "--temperature", "1",
                                    "--num-samples", samples,
                                    "--run-dir",     folder / name,
                                    "--quiet"};
  };
  ASSERT_EQ(run_program(arguments("whole", "2")).status, 0);
  std::filesystem::copy(folder / "whole", folder / "cut");
  std::filesystem::remove(folder / "cut/sample_00001.npz");
  const auto resumed = run_program({"run", "--resume", folder / "cut", "--quiet"});
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(content_of(folder / "cut/sample_00001.npz"), content_of(folder / "whole/sample_00001.npz"));
}

TEST(Families, StopTextsEndAStoryAndAreLeftOut) {
  const std::filesystem::path model = SINKSCOPE_SOURCE_DIR "/models/stories260k";
  const TemporaryFolder folder;
  const auto story = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"run", model,     "--prompt", "Once upon a time", "--raw", "--gen-len",
                                       "60",  "--quiet", "--out",    folder / "runs"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.error;
    return result.out;
  };
  const std::string whole = story({});
  EXPECT_THAT(whole, HasSubstr("there was a little girl named Lily. She loved to play"));
  EXPECT_EQ(story({"--stop", " She loved"}), whole.substr(0, whole.find(" She loved")) + "\n");
  EXPECT_THAT(run_program({"run", model, "--prompt", "x", "--raw", "--stop", ""}).error,
              HasSubstr("--stop is an empty text"));
}

TEST(Families, DeviationFromTheExactRunIsMeasuredAndPrinted) {
  const TemporaryFolder folder;
  const auto result = run_program({"run", "tiny-llada", "--prompt-ids", "5,6,7", "--gen-len", "32", "--steps",
                                   "32", "--threshold", "0.9", "--cache", "prefix", "--deviation",
                                   "--run-dir", folder / "run", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("deviation from the exact run: "), HasSubstr(" of 32 tokens equal")));
  const std::vector<json> lines = lines_of(content_of(folder / "run/deviation.jsonl"));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["tokens"], 32);
  EXPECT_EQ(lines[0]["exact_forward_passes"], 32);
  EXPECT_LE(lines[0]["forward_passes"], 32);
  EXPECT_EQ(lines[0]["first_difference"].is_null(), lines[0]["equal"] == 32);
}

// However the run was interrupted there is one line a sample, and the sums printed are over all of them.
TEST(Families, TheDeviationOfEverySampleSurvivesAnInterruption) {
  const TemporaryFolder folder;
  const auto result = run_program({"run",          "tiny-llada",
                                   "--prompt-ids", "5,6,7",
                                   "--prompt-ids", "8",
                                   "--prompt-ids", "9,10",
                                   "--batch",      "2",
                                   "--gen-len",    "8",
                                   "--steps",      "8",
                                   "--block-len",  "8",
                                   "--cache",      "dual",
                                   "--quiet",      "--deviation",
                                   "--run-dir",    folder / "whole"});
  ASSERT_EQ(result.status, 0) << result.error;
  const auto without_seconds = [](std::vector<json> lines) {
    for (json& line : lines) line.erase("seconds"), line.erase("exact_seconds");
    return lines;
  };
  const std::string text = content_of(folder / "whole/deviation.jsonl");
  const std::vector<json> whole = without_seconds(lines_of(text));
  ASSERT_EQ(whole.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(whole[i]["index"], i);
  // Killed behind a line of deviation.jsonl whose sample is not finished yet, and in the middle of another.
  std::filesystem::copy(folder / "whole", folder / "cut");
  std::filesystem::remove(folder / "cut/sample_00001.npz");
  std::filesystem::remove(folder / "cut/sample_00002.npz");
  const std::size_t third = text.rfind('\n', text.size() - 2) + 1;
  write_file(folder / "cut/deviation.jsonl", text.substr(0, third + 20));
  const auto resumed = run_program({"run", "--resume", folder / "cut", "--quiet"});
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(without_seconds(lines_of(content_of(folder / "cut/deviation.jsonl"))), whole);
  EXPECT_THAT(resumed.out, HasSubstr(" of 24 tokens equal"));
}

TEST(Families, AnEmptyPromptIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto result = run_program({"run", golden + "llama-random", "--prompt-ids", "1,2", "--prompt-ids", "",
                                   "--gen-len", "2", "--run-dir", folder / "run", "--quiet"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.error, HasSubstr("prompt 1 is empty"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(Score, WritesALineAPairAndGoesOnWithAFile) {
  const TemporaryFolder folder;
  std::string pairs;
  for (const char* continuation : {" cats", " dogs and cats", " x"})
    pairs += json{{"context", "Tom likes"}, {"continuation", continuation}}.dump() + "\n";
  write_file(folder / "pairs.jsonl", pairs);
  const std::filesystem::path model = SINKSCOPE_SOURCE_DIR "/models/stories260k";
  const std::vector<std::string> arguments{"score", model, "--pairs", folder / "pairs.jsonl", "--quiet"};
  const auto printed = run_program(arguments);
  ASSERT_EQ(printed.status, 0) << printed.error;
  const std::vector<json> lines = lines_of(printed.out);
  ASSERT_EQ(lines.size(), 3U);
  for (const json& line : lines) {
    EXPECT_LT(line["loglikelihood"], 0);
    EXPECT_TRUE(line["greedy"].is_boolean());
  }
  const std::string first_line = printed.out.substr(0, printed.out.find('\n') + 1);
  write_file(folder / "out.jsonl", first_line + "{\"index\": 1, \"logl");  // cut in the middle of a line
  std::vector<std::string> with_file = arguments;
  with_file.insert(with_file.end(), {"--out", folder / "out.jsonl"});
  EXPECT_THAT(run_program(with_file).error, HasSubstr("exists; give --resume"));
  with_file.push_back("--resume");
  ASSERT_EQ(run_program(with_file).status, 0);
  EXPECT_EQ(content_of(folder / "out.jsonl"), printed.out);
}

// What is not the beginning of the same command's output is neither taken for finished pairs nor touched.
TEST(Score, GoesOnOnlyWithItsOwnLines) {
  const TemporaryFolder folder;
  write_file(folder / "pairs", json{{"context", "Tom likes"}, {"continuation", " cats"}}.dump() + "\n");
  const std::string own = R"({"index":0,"loglikelihood":-3.5,"greedy":false,"tokens":2})";
  for (const std::string& content :
       {std::string("a note without a line break"), std::string("{\"architectures\": []}"),
        std::string("garbage\n"), std::string("\n"), own + "\n" + own + "\n",
        std::string(R"({"index":1,"loglikelihood":-3.5,"greedy":false,"tokens":2})") + "\n",
        std::string(R"({"index":0,"loglikelihood":-3.5,"greedy":false,"tokens":77})") + "\n"}) {
    write_file(folder / "out", content);
    const auto result = run_program({"score", SINKSCOPE_SOURCE_DIR "/models/stories260k", "--pairs",
                                     folder / "pairs", "--out", folder / "out", "--resume", "--quiet"});
    EXPECT_EQ(result.status, 1) << content;
    EXPECT_THAT(result.error, HasSubstr("give another --out")) << content;
    EXPECT_EQ(content_of(folder / "out"), content);
  }
}

TEST(Score, EstimatesDoNotDependOnOtherPairs) {
  const TemporaryFolder folder;
  const std::string a = json{{"context", "She has 2 + 3 ="}, {"continuation", " 5"}}.dump() + "\n";
  const std::string b = json{{"context", "One"}, {"continuation", " two three"}}.dump() + "\n";
  write_file(folder / "a", a);
  write_file(folder / "ab", a + b);
  const auto score = [&](const std::string& file) {
    return run_program(
        {"score", "tiny-llada", "--pairs", folder / file, "--mc-num", "16", "--batch", "8", "--quiet"});
  };
  const auto alone = score("a");
  ASSERT_EQ(alone.status, 0) << alone.error;
  EXPECT_EQ(score("ab").out.substr(0, alone.out.size()), alone.out);
}

// A single token is masked in every sample, so that one of them is the exact likelihood, and greedy is its
// arg-max.
TEST(Score, ASingleTokenIsExact) {
  const TemporaryFolder folder;
  write_file(folder / "pairs", json{{"context", "She has 2 + 3 ="}, {"continuation", " the"}}.dump() + "\n");
  const auto score = [&](const std::string& samples) {
    const auto result = run_program({"score", "tiny-llada", "--pairs", folder / "pairs", "--mc-num", samples,
                                     "--batch", "1", "--check-greedy", "--dtype", "f32", "--quiet"});
    EXPECT_EQ(result.status, 0) << result.error;
    return lines_of(result.out).at(0);
  };
  const json one = score("1"), four = score("4");
  ASSERT_EQ(one["tokens"], 1);
  EXPECT_NEAR(one["loglikelihood"].get<double>(), four["loglikelihood"].get<double>(), 1e-5);
  EXPECT_TRUE(one["greedy"].is_boolean());
}

TEST(Score, FaultsNameTheLineOrTheOption) {
  const TemporaryFolder folder;
  write_file(folder / "no_context", "{\"continuation\": \"x\"}\n");
  write_file(folder / "empty", json{{"context", "a"}, {"continuation", ""}}.dump() + "\n");
  write_file(folder / "pairs", json{{"context", "a"}, {"continuation", "b"}}.dump() + "\n");
  const auto error = [&](const std::string& file, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments{"score", "tiny-llada", "--pairs", folder / file, "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(arguments).error;
  };
  EXPECT_THAT(error("no_context"), HasSubstr("no_context line 1 must hold a JSON object with the strings"));
  EXPECT_THAT(error("empty"), HasSubstr("empty line 1: the continuation is empty"));
  write_file(folder / "merged", json{{"context", "Onc"}, {"continuation", "e"}}.dump() + "\n");
  EXPECT_THAT(error("merged"), HasSubstr("it merges with the context's last one"));
  EXPECT_THAT(error("pairs", {"--mc-num", "10", "--batch", "4"}),
              HasSubstr("--mc-num 10 is not a multiple of --batch 4"));
  EXPECT_THAT(error("pairs", {"--nll-type", "ar_ftb"}), HasSubstr("--nll-type and --log-type are for Dream"));
  EXPECT_THAT(error("pairs", {"--max-length", "2", "--cfg", "-1"}), HasSubstr("--cfg is -1"));
}

}  // namespace
}  // namespace sinkscope
