// Benchmarks as on the command line: scores, the grid, shards, going on, kind errors.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/folder_lock.h"
#include "support/environment.h"
#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using testing::Environment;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::string sums = std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/task.json";

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::istringstream content(content_of(file));
  for (std::string line; std::getline(content, line);) lines.push_back(json::parse(line));
  return lines;
}

json json_of(const std::filesystem::path& file) { return json::parse(content_of(file)); }

class Eval : public ::testing::Test {
 protected:
  testing::ProgramResult eval(const std::vector<std::string>& more, const std::string& model = "sums-llama") {
    std::vector<std::string> arguments{"eval", model, "--tasks", sums, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  std::string path(const std::string& name) const { return folder / name; }

  TemporaryFolder folder;
};

TEST_F(Eval, LeavesResultsAsTheHarnessDoes) {
  const auto result = eval({"--limit", "5", "--run-dir", path("run")});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("sums: exact_match (result), % +- standard error of 5 problems"));
  const json results = json_of(folder / "run/plain/results.json");
  EXPECT_EQ(results["n-samples"]["sums"], json({{"original", 1000}, {"effective", 5}}));
  EXPECT_EQ(results["n-shot"]["sums"], 0);
  EXPECT_EQ(results["versions"]["sums"], 1);
  EXPECT_EQ(results["configs"]["sums"]["doc_to_text"], "{{prompt}}");
  const auto lines = lines_of(folder / "run/plain/samples_sums.jsonl");
  ASSERT_EQ(lines.size(), 15U);  // three filters
  double right = 0;
  for (const json& line : lines)
    if (line["filter"] == "result") right += line["exact_match"].get<double>();
  EXPECT_DOUBLE_EQ(results["results"]["sums"]["exact_match,result"].get<double>(), right / 5);
  EXPECT_EQ(json_of(folder / "run/plain/sums/run.json")["command"], "eval");
}

TEST_F(Eval, EveryCellOfTheGridIsARunComparedWithTheOthers) {
  const auto result = eval({"--limit", "12", "--sink-top-k", "0,1", "--sink-rank", "visible,last",
                            "--sink-control", "none,random", "--json", "--run-dir", path("run")});
  ASSERT_EQ(result.status, 0) << result.error;
  const json summary = json::parse(result.out);
  EXPECT_EQ(summary, json_of(folder / "run/eval.json"));
  ASSERT_EQ(summary["cells"].size(), 5U);
  ASSERT_EQ(summary["table"].size(), 15U);
  const json& visible = summary["table"][1];
  EXPECT_EQ(visible["cell"], "visible-1");
  EXPECT_LT(visible["against_plain"]["difference"].get<double>(), -0.3);  // its sinks are what it stands on
  EXPECT_EQ(visible["against_controls"][0]["control"], "random");
  EXPECT_EQ(json_of(folder / "run/visible-1-random/sums/run.json")["sink"]["control"], "random");
  EXPECT_EQ(json_of(folder / "run/last-1/sums/run.json")["options"]["sink_rank"], "last");
  EXPECT_EQ(json_of(folder / "run/last-1/results.json")["config"]["intervention"]["top_k"], 1);
  EXPECT_THAT(content_of(folder / "run/eval.csv"),
              HasSubstr("\nsums,exact_match,result,visible-1,1,visible,none,12,"));
}

TEST_F(Eval, DiffusionModelsAnswerToo) {
  const auto result = eval({"--limit", "2", "--sink-top-k", "0,1", "--run-dir", path("run")}, "sums-llada");
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("1 by columns"));
  EXPECT_EQ(json_of(folder / "run/plain/sums/run.json")["options"]["steps"], 24);
}

TEST_F(Eval, ShardsJoinToWhatOneProcessLeaves) {
  const std::vector<std::string> grid{"--limit", "7", "--sink-top-k", "0,1", "--sink-control", "none,random"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), grid.begin(), grid.end());
    return eval(more);
  };
  ASSERT_EQ(with({"--run-dir", path("whole"), "--capture", "columns"}).status, 0);
  ASSERT_EQ(with({"--run-dir", path("part"), "--capture", "columns", "--shard", "0/2"}).status, 0);
  {
    const Environment rank("RANK", "1"), size("WORLD_SIZE", "2");
    ASSERT_EQ(with({"--run-dir", path("part"), "--capture", "columns"}).status, 0);
  }
  const auto merged = run_program({"merge", path("part.shard-1-of-2"), path("part.shard-0-of-2"), "--run-dir",
                                   path("merged"), "--quiet"});
  ASSERT_EQ(merged.status, 0) << merged.error;
  for (const char* cell : {"plain", "last-1", "last-1-random"}) {
    const std::string name = cell;
    EXPECT_EQ(content_of(folder / ("merged/" + name + "/samples_sums.jsonl")),
              content_of(folder / ("whole/" + name + "/samples_sums.jsonl")));
    json whole = json_of(folder / ("whole/" + name + "/results.json"));
    json joined = json_of(folder / ("merged/" + name + "/results.json"));
    for (json* results : {&whole, &joined}) results->erase("date");
    EXPECT_EQ(joined, whole);
    for (int sample = 0; sample < 7; ++sample) {
      const std::string file = "/" + name + "/sums/sample_0000" + std::to_string(sample) + ".npz";
      EXPECT_EQ(content_of(folder / ("merged" + file)), content_of(folder / ("whole" + file)));
    }
    EXPECT_EQ(json_of(folder / ("merged/" + name + "/sums/run.json"))["options"],
              json_of(folder / ("whole/" + name + "/sums/run.json"))["options"]);
  }
  EXPECT_EQ(json_of(folder / "merged/eval.json")["table"], json_of(folder / "whole/eval.json")["table"]);
}

TEST_F(Eval, LikelihoodsOfChoicesJoinToo) {
  write_file(folder / "task.json",
             R"({"task":"pick","output_type":"multiple_choice","data":"pick.jsonl","doc_to_text":"{{q}}",)"
             R"("doc_to_choice":"c","doc_to_label":"l"})");
  std::string problems;
  for (int i = 0; i < 5; ++i)
    problems +=
        R"({"q":"Mark had )" + std::to_string(i) + R"( books.","c":["He had books.","x"],"l":0})" + "\n";
  write_file(folder / "pick.jsonl", problems);
  const auto pick = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", "sums-llada", "--tasks", path("task.json"), "--quiet", "--mc-num", "4",
                               "--likelihood-batch", "4", "--sink-top-k", "0,1"});
    return run_program(more);
  };
  const auto whole = pick({"--run-dir", path("whole")});
  ASSERT_EQ(whole.status, 0) << whole.error;
  EXPECT_THAT(whole.out, HasSubstr("acc_norm"));
  for (const char* shard : {"0/2", "1/2"})
    ASSERT_EQ(pick({"--run-dir", path("part"), "--shard", shard}).status, 0);
  ASSERT_EQ(run_program(
                {"merge", path("part.shard-0-of-2"), path("part.shard-1-of-2"), "--run-dir", path("merged")})
                .status,
            0);
  for (const char* file : {"plain/samples_pick.jsonl", "plain/pick/likelihoods.jsonl"})
    EXPECT_EQ(content_of(folder / "merged" / file), content_of(folder / "whole" / file)) << file;
}

TEST_F(Eval, GoesOnWhereItWasInterrupted) {
  const std::vector<std::string> options{"--limit",        "40",         "--sink-top-k", "0,1",
                                         "--sink-control", "none,random"};
  auto whole = options, broken = options;
  whole.insert(whole.end(), {"--run-dir", path("whole")});
  broken.insert(broken.end(), {"--run-dir", path("broken")});
  ASSERT_EQ(eval(whole, "sums-llama").status, 0);
  broken.insert(broken.begin(), {"eval", "sums-llama", "--tasks", sums, "--quiet"});
  const auto killed = run_program(broken, {.meanwhile = [&](pid_t child) {
                                    const auto file = folder / "broken/plain/sums/samples.jsonl";
                                    for (int i = 0; i < 3000 && lines_of(file).size() < 3; ++i)
                                      std::this_thread::sleep_for(std::chrono::milliseconds(10));
                                    ::kill(child, SIGKILL);
                                  }});
  EXPECT_EQ(killed.status, 128 + SIGKILL);
  const auto resumed = run_program({"eval", "--resume", path("broken"), "--quiet"});
  ASSERT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(json_of(folder / "broken/eval.json")["table"], json_of(folder / "whole/eval.json")["table"]);
  const auto again = run_program({"eval", "--resume", path("broken"), "--quiet"});  // nothing is left to do
  EXPECT_EQ(again.out, resumed.out);
  EXPECT_EQ(run_program({"eval", "--resume", path("broken"), "--limit", "3"}).status, 2);
  const FolderLock other(folder / "broken");
  const auto second = run_program({"eval", "--resume", path("broken"), "--quiet"});
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.error, HasSubstr("another process is writing " + path("broken")));
}

TEST_F(Eval, GoesOnOnlyWithTheTasksItBeganWith) {
  const auto write_task = [&](const std::string& match) {
    write_file(
        folder / "task.json",
        R"({"task":"mine","data":"mine.jsonl","doc_to_text":"{{q}}","doc_to_target":"{{a}}","gen_len":4,)"
        R"("filters":[{"name":"n","regex":"[0-9]+","match":")" +
            match + R"("}]})");
  };
  write_task("first");
  write_file(folder / "mine.jsonl", "{\"q\":\"Mark had 1 book.\",\"a\":\"1\"}\n");
  ASSERT_EQ(
      run_program({"eval", "sums-llama", "--tasks", path("task.json"), "--run-dir", path("run"), "--quiet"})
          .status,
      0);
  EXPECT_EQ(run_program({"eval", "--resume", path("run"), "--quiet"}).status, 0);
  write_task("last");
  const auto changed = run_program({"eval", "--resume", path("run"), "--quiet"});
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.error, HasSubstr("the tasks or their data are not those the evaluation began with"));
  write_task("first");
  write_file(folder / "mine.jsonl", "{\"q\":\"Mark had 1 book.\",\"a\":\"2\"}\n");
  EXPECT_EQ(run_program({"eval", "--resume", path("run"), "--quiet"}).status, 1);
}

TEST_F(Eval, MergeFindsProblemsThatAreNotThere) {
  for (const char* shard : {"0/2", "1/2"})
    ASSERT_EQ(eval({"--limit", "4", "--run-dir", path("a"), "--shard", shard}).status, 0);
  write_file(folder / "a.shard-1-of-2/plain/samples_sums.jsonl", "");
  const auto merged =
      run_program({"merge", path("a.shard-0-of-2"), path("a.shard-1-of-2"), "--run-dir", path("m")});
  EXPECT_EQ(merged.status, 1);
  EXPECT_THAT(merged.error, HasSubstr("the shards hold"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
}

TEST_F(Eval, ScoresAnswersFromElsewhere) {
  write_file(
      folder / "answers.jsonl",
      "{\"doc_id\":1,\"response\":\"#### 2\"}\n\n{\"doc_id\":0,\"resps\":[[\"10 + 13 = 23\\n#### 23\"]]}\n");
  const auto result = run_program({"eval", "--tasks", sums, "--responses", path("answers.jsonl"), "--run-dir",
                                   path("scored"), "--quiet", "--json"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(json::parse(result.out)["table"][0]["value"], 1.0);
  EXPECT_EQ(json_of(folder / "scored/plain/results.json")["n-samples"]["sums"]["effective"], 2);
  write_file(folder / "answers.jsonl", "{\"doc_id\":1000,\"response\":\"\"}\n");
  const auto wrong =
      run_program({"eval", "--tasks", sums, "--responses", path("answers.jsonl"), "--run-dir", path("b")});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.error,
              HasSubstr("answers.jsonl line 1: doc_id is 1000; the task's problems are 0 to 999"));
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", "--tasks", sums, "--run-dir", path("c")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = run_program(arguments);
    EXPECT_EQ(refused.status, 2);
    return refused.error;
  };
  for (const char* option : {"--sink-top-k", "--gen-len", "--seed", "--batch"})
    EXPECT_THAT(
        refusal({"--responses", path("answers.jsonl"), option, "1"}),
        HasSubstr(std::string(option) + " cannot be given with --responses: the answers are there already"));
  EXPECT_THAT(refusal({"--responses", path("answers.jsonl"), "--shard", "0/2"}),
              HasSubstr("--shard cannot be given"));
  EXPECT_THAT(refusal({"--responses", ""}), HasSubstr("--responses is empty"));
  const Environment rank("RANK", "0"), size("WORLD_SIZE", "2");
  EXPECT_THAT(refusal({"--responses", path("answers.jsonl")}),
              HasSubstr("--responses is scored by one process"));
}

TEST_F(Eval, CodeIsRunOnlyWhereThatIsConfirmed) {
  write_file(folder / "task.json",
             R"({"task":"code","data":"code.jsonl","doc_to_text":"{{q}}","doc_to_target":"","metric":"code",)"
             R"("filters":[{"name":"none","take":"raw"}],"program":"{{response}}","tests":"assert x == 1"})");
  write_file(folder / "code.jsonl", "{\"q\":\"\"}\n{\"q\":\"\"}\n");
  write_file(folder / "answers.jsonl", "{\"response\":\"x = 1\"}\n{\"response\":\"x = 2\"}\n");
  const std::vector<std::string> arguments{
      "eval",    "--tasks",   path("task.json"), "--responses", path("answers.jsonl"),
      "--quiet", "--run-dir", path("run")};
  const auto refused = run_program(arguments);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.error, HasSubstr("--confirm-run-unsafe-code allows it"));
  auto confirmed = arguments;
  confirmed.emplace_back("--confirm-run-unsafe-code");
  const auto result = run_program(confirmed);
  if (result.status == 1 && result.error.find("sandbox") != std::string::npos) GTEST_SKIP() << result.error;
  ASSERT_EQ(result.status, 0) << result.error;
  const auto lines = lines_of(folder / "run/plain/samples_code.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["code"], 1.0);
  EXPECT_EQ(lines[1]["code"], 0.0);
  EXPECT_THAT(lines[1]["reason"].get<std::string>(), HasSubstr("AssertionError"));
}

TEST_F(Eval, FaultsAreNamedBeforeTheFirstSample) {
  const struct {
    std::vector<std::string> more;
    int status;
    const char* says;
  } cases[] = {
      {{"--sink-top-k", "1,x"}, 2, "--sink-top-k \"1,x\": 'x' is no whole number"},
      {{"--sink-top-k", "1", "--sink-rank", "best"}, 2, "best"},
      {{"--sink-top-k", "1", "--sink-control", "none,none"}, 2, "names none twice"},
      {{"--sink-top-k", "1", "--sink-rank", "usual,last"}, 2, "it is the model's usual one"},
      {{"--limit", "0"}, 2, "--limit is 0"},
      {{"--shard", "2/2", "--run-dir", "x"}, 2, "--shard \"2/2\" is not of the form I/N"},
      {{"--shard", "0/2"}, 2, "give --run-dir"},
      {{"--tasks", "gsm8k"}, 2, "task gsm8k needs gsm8k/test.jsonl: give --data-dir DIR"},
      {{"--tasks", "nonsense"}, 2, "there is no task \"nonsense\""},
      {{"--tasks", sums + ",./" + std::filesystem::relative(sums).string()}, 2, "names two tasks \"sums\""},
      {{"--steps", "3"}, 2, "--steps is for diffusion models"},
      {{"--block-len", "2"}, 2, "--block-len is for diffusion models"},
      {{"--mc-num", "7", "--likelihood-batch", "0"}, 2, "batch"},
      {{"--sink-rank", "foo"}, 2, "foo"},
      {{"--sink-control", "foo"}, 2, "foo"},
  };
  for (const auto& [more, status, says] : cases) {
    auto arguments = more;
    arguments.insert(arguments.end(), {"--out", path("out")});
    const auto result = eval(arguments);
    EXPECT_EQ(result.status, status) << result.error;
    EXPECT_THAT(result.error, HasSubstr(says));
  }
}

TEST_F(Eval, MergeNamesWhatDoesNotBelongTogether) {
  ASSERT_EQ(eval({"--limit", "4", "--run-dir", path("a"), "--shard", "0/2"}).status, 0);
  ASSERT_EQ(eval({"--limit", "2", "--run-dir", path("b"), "--shard", "1/2"}).status, 0);
  ASSERT_EQ(eval({"--limit", "4", "--run-dir", path("c")}).status, 0);
  const auto merge = [&](std::vector<std::string> runs) {
    runs.insert(runs.begin(), "merge");
    runs.insert(runs.end(), {"--run-dir", path("merged")});
    const auto result = run_program(runs);
    EXPECT_EQ(result.status, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "merged"));
    return result.error;
  };
  EXPECT_THAT(merge({path("a.shard-0-of-2")}), HasSubstr("shard 1 of 2 is missing"));
  EXPECT_THAT(merge({path("a.shard-0-of-2"), path("b.shard-1-of-2")}),
              HasSubstr("was made with other options than"));
  EXPECT_THAT(merge({path("a.shard-0-of-2"), path("a.shard-0-of-2")}), HasSubstr("are the same shard"));
  EXPECT_THAT(merge({path("c")}), HasSubstr("is no shard"));
}

TEST(RunInShards, JoinsToWhatOneProcessLeaves) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run",         "tiny-llada",
                                       "--prompt",    "a",
                                       "--prompt",    "bc",
                                       "--prompt",    "d",
                                       "--gen-len",   "4",
                                       "--steps",     "4",
                                       "--block-len", "4",
                                       "--quiet",     "--sink-top-k",
                                       "1",           "--sink-control",
                                       "random",      "--temperature",
                                       "0.5",         "--run-dir",
                                       folder / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_program(arguments);
    ASSERT_EQ(result.status, 0) << result.error;
  };
  run("whole", {});
  run("part", {"--shard", "0/2"});
  run("part", {"--shard", "1/2"});
  const auto merged = run_program(
      {"merge", folder / "part.shard-0-of-2", folder / "part.shard-1-of-2", "--run-dir", folder / "merged"});
  ASSERT_EQ(merged.status, 0) << merged.error;
  EXPECT_EQ(testing::names_in(folder / "merged"), testing::names_in(folder / "whole"));
  for (const char* file : {"sample_00000.npz", "sample_00001.npz", "sample_00002.npz"})
    EXPECT_EQ(content_of(folder / "merged" / file), content_of(folder / "whole" / file)) << file;
  auto whole = lines_of(folder / "whole/samples.jsonl"), joined = lines_of(folder / "merged/samples.jsonl");
  for (auto* lines : {&whole, &joined})
    for (json& line : *lines) line.erase("seconds");
  EXPECT_EQ(joined, whole);
}

}  // namespace
}  // namespace sinkscope
