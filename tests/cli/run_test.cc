// `sinkscope run` as a user meets it: files, options, interruption, errors.
#include <gmock/gmock.h>
#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::string random_model = std::string(SINKSCOPE_TEST_DATA) + "/golden/llada-random";
const std::string tiny = std::string(SINKSCOPE_SOURCE_DIR) + "/models/tiny-llada";

// A short run of the random model with the given options on top.
ProgramResult short_run(const std::filesystem::path& folder, const std::vector<std::string>& more = {},
                        const testing::ProgramOptions& how = {}) {
  std::vector<std::string> arguments{"run",         random_model, "--prompt-ids", "3,4,5",
                                     "--steps",     "8",          "--gen-len",    "16",
                                     "--block-len", "8",          "--run-dir",    folder.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments, how);
}

std::string sample_of(const std::filesystem::path& folder, int index = 0) {
  return content_of(sample_path(folder, index));
}

// samples.jsonl without the one field that differs from run to run.
std::vector<json> lines_of(const std::filesystem::path& folder) {
  std::vector<json> lines;
  std::istringstream stream(content_of(folder / "samples.jsonl"));
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line));
    lines.back().erase("seconds");
  }
  return lines;
}

TEST(Run, WritesWhatTheInterfacePromises) {
  const TemporaryFolder folder;
  const auto result = short_run(
      folder / "r", {"--capture", "full", "--maps", "0:1,2:3", "--sink-top-k", "2", "--prompt-ids", "7"});
  ASSERT_EQ(result.status, 0) << result.error;
  const json info = json::parse(content_of(folder / "r/run.json"));
  EXPECT_EQ(info["format"], 1);
  EXPECT_EQ(info["command"], "run");
  EXPECT_EQ(info["options"]["gen_len"], 16);
  EXPECT_EQ(info["options"]["sink_top_k"], 2);
  EXPECT_EQ(info["options"]["prompt_ids"], (json{"3,4,5", "7"}));
  EXPECT_EQ(info["model"]["family"], "llada");
  EXPECT_EQ(info["model"]["mask_id"], 299);
  EXPECT_EQ(info["model"]["config_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(info["sink"]["top_k"], 2);
  EXPECT_EQ(info["sink"]["control"], "none");
  EXPECT_TRUE(info["ended"].is_string());
  const std::vector<json> lines = lines_of(folder / "r");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["prompt_ids"], (json{3, 4, 5}));
  EXPECT_EQ(lines[0]["output_ids"].size(), 16u);
  EXPECT_EQ(lines[0]["forward_passes"], 8);
  const NpzFile sample(sample_path(folder / "r", 0));
  const std::map<std::string, std::vector<std::int64_t>> shapes{{"states", {9, 19}},
                                                                {"proposed", {8, 19}},
                                                                {"confidence", {8, 19}},
                                                                {"column_sum", {8, 3, 3, 4, 19}},
                                                                {"masked_keys", {8, 3, 4, 19}},
                                                                {"prompt_length", {}},
                                                                {"mask_id", {}},
                                                                {"diagonal", {8, 3, 4, 19}},
                                                                {"row_entropy", {8, 3, 3, 4}},
                                                                {"row_max", {8, 3, 3, 4}},
                                                                {"value_norm", {8, 3, 4, 19}},
                                                                {"map_L0_H1", {8, 19, 19}},
                                                                {"map_L2_H3", {8, 19, 19}}};
  for (const auto& [name, shape] : shapes) EXPECT_EQ(sample.array(name).shape, shape) << name;
  EXPECT_EQ(sample.names().size(), shapes.size());
  EXPECT_EQ(sample.array("column_sum").type, ArrayType::float16);
}

// The parts of a run agree with each other: a map's columns are the column sums, its diagonal the diagonal.
TEST(Run, MapsColumnsAndDiagonalAreOfOnePiece) {
  const TemporaryFolder folder;
  ASSERT_EQ(short_run(folder / "r",
                      {"--capture", "full", "--maps", "1:2", "--sink-top-k", "3", "--array-dtype", "f32"})
                .status,
            0);
  const NpzFile sample(sample_path(folder / "r", 0));
  const std::vector<float> map = sample.floats("map_L1_H2"), columns = sample.floats("column_sum"),
                           diagonal = sample.floats("diagonal");
  const std::size_t S = 19, L = 3, H = 4;
  for (std::size_t t = 0; t < 8; ++t)
    for (std::size_t j = 0; j < S; ++j) {
      double column = 0, by_class = 0;
      for (std::size_t i = 0; i < S; ++i) column += map[(t * S + i) * S + j];
      for (std::size_t c = 0; c < 3; ++c) by_class += columns[(((t * 3 + c) * L + 1) * H + 2) * S + j];
      EXPECT_NEAR(column, by_class, 1e-4);
      EXPECT_EQ(map[(t * S + j) * S + j], diagonal[((t * L + 1) * H + 2) * S + j]);
    }
}

TEST(Run, CaptureNoneLeavesTheColumnsOutAndChangesNoId) {
  const TemporaryFolder folder;
  ASSERT_EQ(short_run(folder / "none", {"--capture", "none", "--sink-top-k", "1"}).status, 0);
  ASSERT_EQ(short_run(folder / "full", {"--capture", "full", "--sink-top-k", "1"}).status, 0);
  const NpzFile none(sample_path(folder / "none", 0)), full(sample_path(folder / "full", 0));
  EXPECT_FALSE(none.contains("column_sum"));
  EXPECT_TRUE(none.contains("masked_keys"));
  EXPECT_EQ(none.int32s("states"), full.int32s("states"));
}

// Every option changes what it should; none is read and forgotten.
TEST(Run, EveryOptionChangesTheRun) {
  const TemporaryFolder folder;
  ASSERT_EQ(short_run(folder / "plain").status, 0);
  ASSERT_EQ(short_run(folder / "masked", {"--sink-top-k", "3"}).status, 0);
  int number = 0;
  const auto differs = [&](const std::string& base, std::vector<std::string> more) {
    const auto run = folder / std::to_string(number++);
    const auto result = short_run(run, more);
    ASSERT_EQ(result.status, 0) << more[0] << result.error;
    EXPECT_NE(sample_of(run), sample_of(folder / base)) << more[0];
  };
  differs("plain", {"--temperature", "0.9"});
  differs("plain", {"--temperature", "0.9", "--seed", "3"});
  differs("plain", {"--cfg", "1.5"});
  differs("plain", {"--remasking", "random"});
  differs("plain", {"--confidence", "f32"});
  differs("plain", {"--dtype", "bf16"});
  differs("plain", {"--array-dtype", "f32"});
  differs("plain", {"--capture", "full"});
  differs("plain", {"--maps", "0:0"});
  differs("plain", {"--sink-top-k", "1"});
  differs("masked", {"--sink-top-k", "3", "--epsilon", "2"});
  differs("masked", {"--sink-top-k", "3", "--sink-rule", "topk"});
  differs("masked", {"--sink-top-k", "3", "--sink-scale", "mean", "--epsilon", "0.2"});
  differs("masked", {"--sink-top-k", "3", "--sink-scale", "percent", "--epsilon", "20"});
  differs("masked", {"--sink-top-k", "3", "--sink-from", "masked"});
  differs("masked", {"--sink-top-k", "3", "--exclude-self"});
  differs("masked", {"--sink-top-k", "3", "--mask-sink-ratio", "0.5"});
  EXPECT_NE(sample_of(folder / "0"), sample_of(folder / "1"));  // the seed
}

// On the model that predicts its end token, its mask and rounds its confidences.
TEST(Run, EndTokenMaskAndConfidenceOptionsChangeTheRun) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "run",         tiny, "--prompt",  "Tom has 3 apples and buys 4. How many has he?",
        "--steps",     "16", "--gen-len", "64",
        "--block-len", "64", "--quiet",   "--run-dir",
        folder / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_program(arguments).status, 0) << name;
    return NpzFile(sample_path(folder / name, 0)).floats("confidence");
  };
  const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  };
  const auto plain = run("plain", {});
  EXPECT_TRUE(equal(plain, run("again", {})));
  EXPECT_FALSE(equal(plain, run("logits", {"--logits-eos-inf"})));
  EXPECT_FALSE(equal(plain, run("confidence", {"--confidence-eos-eot-inf"})));
  EXPECT_FALSE(equal(plain, run("forbid", {"--forbid-mask"})));
  EXPECT_FALSE(equal(plain, run("raw", {"--raw"})));
  EXPECT_FALSE(equal(plain, run("system", {"--system", "Answer briefly."})));
  const auto rounded = run("model", {"--confidence", "model"});
  for (const float value : rounded) {
    if (std::isnan(value)) continue;
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    ASSERT_EQ(bits & 0xFFFFu, 0u) << value;  // bfloat16, the dtype of this checkpoint
  }
}

TEST(Run, PromptsComeFromTextJsonLinesAndDataSets) {
  const TemporaryFolder folder;
  write_file(folder / "text.txt", "How many?\n\nWhy?\n");
  write_file(folder / "lines.jsonl",
             "{\"question\": \"Q1\", \"answer\": \"#### 7\", \"id\": \"first\"}\n{\"prompt\": \"P2\"}\n");
  std::filesystem::create_directories(folder / "data/gsm8k");
  write_file(folder / "data/gsm8k/test.jsonl",
             "{\"question\": \"D1\", \"answer\": \"A\"}\n{\"question\": \"D2\", \"answer\": \"B\"}\n");
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"run",         tiny, "--steps", "1",         "--gen-len",  "4",
                                       "--block-len", "4",  "--quiet", "--run-dir", folder / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.error;
    return lines_of(folder / name);
  };
  const auto text =
      run("a", {"--prompts", folder / "text.txt", "--prompt", "[a, b]", "--prompt", "--x_y -1"});
  ASSERT_EQ(text.size(), 4u);
  EXPECT_EQ(text[0]["prompt"], "[a, b]");
  EXPECT_EQ(text[1]["prompt"], "--x_y -1");
  EXPECT_EQ(text[3]["prompt"], "Why?");
  EXPECT_FALSE(text[0].contains("reference"));
  const auto json_lines = run("b", {"--prompts", folder / "lines.jsonl"});
  EXPECT_EQ(json_lines[0]["id"], "first");
  EXPECT_EQ(json_lines[0]["reference"], "#### 7");
  EXPECT_EQ(json_lines[1]["prompt"], "P2");
  const auto data = run("c", {"--dataset", "gsm8k", "--data-dir", folder / "data", "--num-samples", "1"});
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0]["prompt"], "D1");
}

TEST(Run, TheBatchChangesNoSample) {
  const TemporaryFolder folder;
  const std::vector<std::string> more{"--prompt-ids",  "9,8,7,6,5,4", "--prompt-ids", "1",
                                      "--temperature", "0.5",         "--sink-top-k", "1",
                                      "--seed",        "11"};
  auto batched = more;
  batched.insert(batched.end(), {"--batch", "3"});
  ASSERT_EQ(short_run(folder / "one", more).status, 0);
  ASSERT_EQ(short_run(folder / "three", batched).status, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sample_of(folder / "one", i), sample_of(folder / "three", i)) << i;
  EXPECT_EQ(lines_of(folder / "one"), lines_of(folder / "three"));
}

TEST(Run, AKilledRunResumesToTheSameBytes) {
  const TemporaryFolder folder;
  const std::vector<std::string> more{"--prompt-ids", "9,8,7", "--prompt-ids",  "1",
                                      "--prompt-ids", "2,2,2", "--temperature", "0.5"};
  ASSERT_EQ(short_run(folder / "whole", more).status, 0);
  const auto lines = [&] { return content_of(folder / "killed/samples.jsonl"); };
  const auto killed = short_run(folder / "killed", more, {.meanwhile = [&](pid_t child) {
                                  while (lines().empty() && ::kill(child, 0) == 0)
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                  ::kill(child, SIGKILL);
                                }});
  ASSERT_FALSE(lines().empty());
  // Whatever the moment of the kill, put the state of one in the middle of the second sample on top.
  std::filesystem::create_directory(folder / "killed/sample_00001.npz.12345-1.tmp");
  const auto resumed = run_program({"run", "--resume", folder / "killed", "--threads", "1", "--quiet"});
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(sample_of(folder / "whole", i), sample_of(folder / "killed", i))
        << i << " after status " << killed.status;
  EXPECT_EQ(lines_of(folder / "whole"), lines_of(folder / "killed"));
  EXPECT_FALSE(std::filesystem::exists(folder / "killed/sample_00001.npz.12345-1.tmp"));
  EXPECT_TRUE(json::parse(content_of(folder / "killed/run.json"))["ended"].is_string());
}

TEST(Run, ResumeRefusesWhatDoesNotBelongToTheRun) {
  const TemporaryFolder folder;
  write_file(folder / "p.txt", "one\ntwo\n");
  const std::vector<std::string> start{"run",         tiny, "--prompts", folder / "p.txt",
                                       "--steps",     "1",  "--gen-len", "4",
                                       "--block-len", "4",  "--run-dir", folder / "r"};
  ASSERT_EQ(run_program(start).status, 0);
  const auto other_option = run_program({"run", "--resume", folder / "r", "--steps", "2"});
  EXPECT_EQ(other_option.status, 2);
  EXPECT_THAT(other_option.error, HasSubstr("--steps"));
  write_file(folder / "p.txt", "three\ntwo\n");
  const auto other_prompts = run_program({"run", "--resume", folder / "r"});
  EXPECT_EQ(other_prompts.status, 1);
  EXPECT_THAT(other_prompts.error, HasSubstr("sample 0"));
  const auto nothing = run_program({"run", "--resume", folder / "none"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.error, HasSubstr("run.json"));
  const auto again = run_program(start);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.error, HasSubstr("--resume"));
}

TEST(Run, DeviationNeedsSomethingThatDeviates) {
  const auto result = run_program({"run", tiny, "--prompt", "x", "--deviation"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.error, HasSubstr("--deviation compares a run with --threshold or --cache"));
}

TEST(Run, OutMakesAFolderOfItsOwnEachTime) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments{"run",         random_model, "--prompt-ids", "3",
                                           "--steps",     "2",          "--gen-len",    "8",
                                           "--block-len", "4",          "--out",        folder / "runs"};
  ASSERT_EQ(run_program(arguments).status, 0);
  ASSERT_EQ(run_program(arguments).status, 0);
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "runs")) {
    ++folders;
    EXPECT_THAT(entry.path().filename().string(),
                ::testing::MatchesRegex("T[0-9]{4}_[0-9]{6}-S2-L8-B4(-2)?"));
  }
  EXPECT_EQ(folders, 2);
}

TEST(Run, WrongUseIsNamedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"--gen-len", "30", "--block-len", "32"}, "--gen-len 32"},
      {{"--gen-len", "128", "--block-len", "32", "--steps", "6"}, "--steps 4 or 8"},
      {{"--steps", "x"}, "--steps"},
      {{"--temperature", "-1"}, "--temperature"},
      {{"--temperature", "nan"}, "--temperature"},
      {{"--remasking", "high_confidence"}, "low_confidence"},
      {{"--confidence", "f16"}, "--confidence"},
      {{"--capture", "all"}, "--capture"},
      {{"--array-dtype", "f64"}, "--array-dtype"},
      {{"--maps", "1"}, "--maps"},
      {{"--maps", "1:2,"}, "--maps"},
      {{"--maps", "3:0"}, "3 layers"},
      {{"--maps", "0:4"}, "4 query heads"},
      {{"--sink-top-k", "-1"}, "--sink-top-k"},
      {{"--epsilon", "-0.1"}, "--epsilon"},
      {{"--mask-sink-ratio", "1.5"}, "--mask-sink-ratio"},
      {{"--sink-rule", "zscore"}, "--sink-rule"},
      {{"--sink-scale", "max"}, "--sink-scale"},
      {{"--sink-from", "cooked"}, "--sink-from"},
      {{"--batch", "0"}, "--batch"},
      {{"--num-samples", "0"}, "--num-samples"},
      {{"--seed", "-1"}, "--seed"},
      {{"--seed", "18446744073709551615"}, "too large"},
      {{"--steps", "8,4"}, "whole number"},
      {{"--prompt-ids", "1,a"}, "--prompt-ids"},
      {{"--prompt-ids", "300"}, "300"},
      {{"--dataset", "gsm8k"}, "--data-dir"},
      {{"--dataset", "mmlu", "--data-dir", "."}, "mmlu"},
      {{"--data-dir", "."}, "--dataset"},
      {{"--raw", "--system", "x"}, "--raw"},
      {{"--raw", "--template", "chatml"}, "--raw"},
      {{"--template", "llama-4"}, "llama-3, llama-2, mistral"},
      {{"--template-date", "2024-02-30"}, "2024-07-26"},
      {{"--template-date", "26 Jul 2024"}, "2024-07-26"},
      {{"--dtype", "f16"}, "bf16"},
      {{"--device", "cuda"}, "CUDA"}};
  for (const auto& [more, named] : table) {
    const auto result = short_run(folder / "r", more);
    EXPECT_EQ(result.status, 2) << named << ": " << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "r"));
  }
  const auto no_prompt = run_program({"run", random_model, "--run-dir", folder / "r"});
  EXPECT_EQ(no_prompt.status, 2);
  EXPECT_THAT(no_prompt.error, HasSubstr("--prompt"));
}

TEST(Run, BrokenPromptFilesNameTheLine) {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& content) {
    write_file(folder / "p.jsonl", content);
    const auto result =
        run_program({"run", tiny, "--prompts", folder / "p.jsonl", "--run-dir", folder / "r"});
    EXPECT_EQ(result.status, 1) << content;
    EXPECT_FALSE(std::filesystem::exists(folder / "r"));
    return result.error;
  };
  EXPECT_THAT(error_of("{\"prompt\": \"a\"}\n{\"prompt\": \n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("{\"text\": \"a\"}\n"), HasSubstr("`prompt`"));
  EXPECT_THAT(error_of("{\"prompt\": [1]}\n"), HasSubstr("`prompt` must be a string"));
  EXPECT_THAT(error_of("[1, 2]\n"), HasSubstr("line 1"));
  EXPECT_THAT(error_of("\n \n"), HasSubstr("no prompt"));
  const auto missing = run_program({"run", tiny, "--prompts", folder / "none.txt"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.error, HasSubstr("none.txt"));
}

TEST(Run, TextPromptsNeedATokenizer) {
  const TemporaryFolder folder;
  const auto result = run_program({"run", random_model, "--prompt", "hello", "--run-dir", folder / "r"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("tokenizer.json"));
}

// A file size limit stands for a full disk: the first sample fits, the second does not.
TEST(Run, AFullDiskLosesNoFinishedSampleAndSaysHowToGoOn) {
  const TemporaryFolder folder;
  const std::string longer(400, '1');
  std::string ids = "1";
  for (int i = 0; i < 200; ++i) ids += ",7";
  ASSERT_EQ(short_run(folder / "whole", {"--prompt-ids", ids}).status, 0);
  const auto full = short_run(folder / "full", {"--prompt-ids", ids}, {.in_child = [] {
                                const struct rlimit limit { 40000, 40000 };
                                ::setrlimit(RLIMIT_FSIZE, &limit);
                              }});
  EXPECT_EQ(full.status, 1) << full.error;
  EXPECT_THAT(full.error, HasSubstr("1 of 2 samples are finished"));
  EXPECT_THAT(full.error, HasSubstr("--resume"));
  EXPECT_EQ(lines_of(folder / "full").size(), 1u);
  ASSERT_EQ(run_program({"run", "--resume", folder / "full"}).status, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sample_of(folder / "whole", i), sample_of(folder / "full", i));
}

// The numbers of closed streams go to the next files opened; no message may end up in those.
TEST(Run, ClosedStreamsDoNotReachTheFiles) {
  const TemporaryFolder folder;
  const auto result = short_run(folder / "r", {"--prompt-ids", "9"}, {.in_child = [] {
                                  ::close(STDOUT_FILENO);
                                  ::close(STDERR_FILENO);
                                }});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(lines_of(folder / "r").size(), 2u);  // each line is JSON
}

TEST(Run, ALostReaderOfTheTextsDoesNotEndTheRun) {
  const TemporaryFolder folder;
  const auto result = short_run(folder / "r", {"--quiet"},
                                {.in_child = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); }});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.error, HasSubstr("standard output"));
  EXPECT_EQ(lines_of(folder / "r").size(), 1u);
}

TEST(Run, AnEmptyPromptRunsAndResumes) {
  const TemporaryFolder folder;
  ASSERT_EQ(short_run(folder / "r", {"--prompt-ids="}).status, 0);
  EXPECT_EQ(lines_of(folder / "r")[1]["prompt_ids"], json::array());
  const std::string before = sample_of(folder / "r", 1);
  std::filesystem::remove(sample_path(folder / "r", 1));
  const auto resumed = run_program({"run", "--resume", folder / "r"});
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(sample_of(folder / "r", 1), before);
}

// What a kill or a full disk leaves before run.json is written.
TEST(Run, AFolderWhoseRunWasNeverBornIsTakenOver) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "r");
  write_file(folder / "r/samples.jsonl", "");
  write_file(folder / "r/run.json.tmp", "{");
  EXPECT_EQ(short_run(folder / "r").status, 0);
  EXPECT_EQ(lines_of(folder / "r").size(), 1u);
}

TEST(Run, PipesAmongTheFilesAreRefusedNotWaitedFor) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "config.json").c_str(), 0600), 0);
  const auto result = run_program({"inspect", folder.path().string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("pipe"));
  const auto device = run_program({"forward", random_model, "--ids", "1", "--out", folder / "config.json"});
  EXPECT_EQ(device.status, 1);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "config.json"));
}

TEST(Run, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  const auto result = short_run(folder / "file/run");
  EXPECT_EQ(result.status, 1) << result.error;
  EXPECT_THAT(result.error, HasSubstr("file/run"));
}

// At this temperature every id is about as likely as the next: of 1024 tokens opened at once some are the
// mask id.
TEST(Run, MasksLeftAreCountedAndForbiddenOnRequest) {
  const TemporaryFolder folder;
  const std::vector<std::string> at_random{"--temperature", "1000", "--steps",     "1",
                                           "--gen-len",     "1024", "--block-len", "1024"};
  const auto left = short_run(folder / "left", at_random);
  ASSERT_EQ(left.status, 0);
  const json line = lines_of(folder / "left")[0];
  EXPECT_GT(line["masks_left"], 0);
  EXPECT_EQ(line["masks_left"], std::count(line["output_ids"].begin(), line["output_ids"].end(), json(299)));
  EXPECT_THAT(left.error, HasSubstr("--forbid-mask"));
  auto forbidden = at_random;
  forbidden.push_back("--forbid-mask");
  ASSERT_EQ(short_run(folder / "forbidden", forbidden).status, 0);
  EXPECT_EQ(lines_of(folder / "forbidden")[0]["masks_left"], 0);
}

// A checkpoint whose last tensor is full of NaN.
TEST(Run, LogitsThatAreNotFiniteEndTheRunWithTheStepAndThePosition) {
  const TemporaryFolder folder;
  std::filesystem::copy(random_model + "/config.json", folder / "config.json");
  std::string weights = content_of(random_model + "/model.safetensors");
  weights.replace(weights.size() - 4096, 4096, std::string(4096, '\xFF'));
  write_file(folder / "model.safetensors", weights);
  const auto result =
      run_program({"run", folder.path().string(), "--prompt-ids", "3,4,5", "--steps", "8", "--gen-len", "16",
                   "--block-len", "8", "--quiet", "--run-dir", folder / "r"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("not finite"));
  EXPECT_THAT(result.error, HasSubstr("step 0, position 3"));
  EXPECT_EQ(lines_of(folder / "r").size(), 0u);
  EXPECT_FALSE(std::filesystem::exists(sample_path(folder / "r", 0)));
}

TEST(Run, RemovingEveryKeyIsCountedAndStaysFinite) {
  const TemporaryFolder folder;
  const auto result = short_run(folder / "r", {"--sink-top-k", "1000", "--sink-rule", "topk"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(lines_of(folder / "r")[0]["empty_rows"], 7 * 3 * 4 * 19);  // every step but the first
}

TEST(Run, MemoryDoesNotGrowWithTheSteps) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& steps) {
    const auto result =
        run_program({"run", random_model, "--prompt-ids", "1,2,3", "--steps", steps, "--gen-len", "64",
                     "--block-len", "64", "--capture", "full", "--maps", "0:0,1:1", "--array-dtype", "f32",
                     "--quiet", "--run-dir", folder / steps});
    EXPECT_EQ(result.status, 0) << result.error;
    return result.peak_kib;
  };
  const long few = run("16");
  const long many = run("1024");  // arrays of 60 MB
  EXPECT_LT(many - few, 12 * 1024);
}

TEST(Run, QuietIsQuietAndTextsGoToStdout) {
  const TemporaryFolder folder;
  const auto result = run_program({"run", tiny, "--prompt", "Hi", "--steps", "4", "--gen-len", "4",
                                   "--block-len", "4", "--quiet", "--run-dir", folder / "r"});
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.out, HasSubstr("[0]"));
}

TEST(Run, TrainedModelAnswersGsm8kWithAndWithoutItsSinks) {
  const std::string data = std::string(SINKSCOPE_SHARED_DIR) + "/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "the GSM8K questions in " << data << " are not there";
  const TemporaryFolder folder;
  std::map<std::string, std::vector<json>> runs;
  for (const std::string top_k : {"0", "1", "5"}) {
    const auto result = run_program(
        {"run",     "tiny-llada", "--dataset", "gsm8k",     "--data-dir",  data, "--num-samples", "3",
         "--steps", "32",         "--gen-len", "32",        "--block-len", "16", "--sink-top-k",  top_k,
         "--batch", "3",          "--quiet",   "--run-dir", folder / top_k});
    ASSERT_EQ(result.status, 0) << result.error;
    runs[top_k] = lines_of(folder / top_k);
    ASSERT_EQ(runs[top_k].size(), 3u);
    for (const json& line : runs[top_k]) EXPECT_EQ(line["masks_left"], 0);
  }
  EXPECT_NE(runs["0"], runs["1"]);
  EXPECT_NE(runs["1"], runs["5"]);
  const NpzFile plain(sample_path(folder / "0", 0)), masked(sample_path(folder / "5", 0));
  EXPECT_FALSE(plain.contains("masked_keys"));
  const NpzArray keys = masked.array("masked_keys");
  const auto removed = std::count(keys.bytes.begin(), keys.bytes.end(), std::byte{1});
  EXPECT_GT(removed, 31 * 36);      // on average more than one a head
  EXPECT_LE(removed, 31 * 36 * 5);  // never more than asked for
}

}  // namespace
}  // namespace sinkscope
