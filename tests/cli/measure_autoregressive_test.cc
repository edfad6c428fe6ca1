// `sinkscope measure --ar` as a user meets it. Its numbers are held against NumPy's in reference_test.cc.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_in;
using ::testing::Not;
using testing::ProgramResult;
using testing::run_program;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

class MeasureAutoregressive : public ::testing::Test {
 protected:
  // Three texts of 20 tokens and more, one of fewer.
  void SetUp() override {
    std::string lines;
    for (const char* name : {"Mark", "Omar", "Ben"})
      lines +=
          json{{"text", std::string(name) +
                            " had 10 books. Tom had 13 more books than that. How many books did they have?"}}
              .dump() +
          "\n";
    lines += json{{"text", "Short."}}.dump() + "\n";
    write_file(text, lines);
  }
  static ProgramResult measure(std::vector<std::string> more) {
    more.insert(more.begin(), {"measure", "--ar", "sums-llama"});
    return run_program(more);
  }
  json measured(std::vector<std::string> more) const {
    more.insert(more.end(), {"--json", "--quiet", "--dtype", "f32"});
    const ProgramResult result = measure(more);
    EXPECT_EQ(result.status, 0) << result.error;
    return json::parse(result.out);
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& message,
                      int status = 2) const {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, status) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
  }

  TemporaryFolder folder;
  std::string text = folder / "text.jsonl";
};

TEST_F(MeasureAutoregressive, SaysWhatWasMeasuredAndLeavesShortTextsOut) {
  const json result = measured({"--text", text, "--length", "20"});
  EXPECT_EQ(result["samples"], 3);
  EXPECT_EQ(result["left_out"], 1);
  EXPECT_EQ(result["length"], 20);
  EXPECT_EQ(result["epsilon"], 0.3);
  EXPECT_EQ(result["model"]["dtype"], "f32");
  EXPECT_EQ(result["sinks"].size(), 20U);
  EXPECT_EQ(result["alpha"].size(), 6U);
  EXPECT_EQ(result["alpha"][0].size(), 8U);
  EXPECT_EQ(result["hidden_norm"].size(), 7U);
  EXPECT_EQ(result["key_norm"].size(), 6U);
  const ProgramResult noted = measure({"--text", text, "--length", "20"});
  EXPECT_THAT(noted.error, AllOf(HasSubstr("1 texts have fewer than 20 tokens and were left out"),
                                 HasSubstr("holds 3 texts that are long enough, --samples asks for 100")));
  EXPECT_EQ(measured({"--text", text, "--length", "20", "--samples", "2"})["samples"], 2);
}

TEST_F(MeasureAutoregressive, EveryOptionChangesWhatItShould) {
  const std::vector<std::string> random{"--sequences", "random", "--samples", "3", "--length", "12"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), random.begin(), random.end());
    return measured(more);
  };
  const json plain = with({});
  EXPECT_EQ(plain, with({"--seed", "0"}));
  EXPECT_NE(plain["sinks"], with({"--seed", "1"})["sinks"]);
  EXPECT_EQ(plain["sinks"], with({"--threads", "1"})["sinks"]);
  const json low = with({"--epsilon", "0"});
  for (const json& sink : low["sinks"]) EXPECT_EQ(sink["sink_rate"], 100);
  EXPECT_EQ(low["alpha"], plain["alpha"]);
  const json of_third = with({"--position", "2"});
  EXPECT_EQ(of_third["sinks"], plain["sinks"]);
  EXPECT_NE(of_third["alpha"], plain["alpha"]);
  EXPECT_NE(of_third["query_key"]["cosine"], plain["query_key"]["cosine"]);
  EXPECT_NE(measured({"--sequences", "repeated", "--samples", "3", "--length", "12"})["sinks"],
            plain["sinks"]);
}

TEST_F(MeasureAutoregressive, LeavesJsonAndTables) {
  const std::string out = folder / "out";
  const ProgramResult result =
      measure({"--text", text, "--length", "20", "--out", out, "--dtype", "f32", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("sums-llama (llama, f32): 3 sequences of 20 tokens, natural"),
                    HasSubstr("Sinks by position, percent (epsilon 0.3; mean over layers and heads"),
                    HasSubstr("q.k as norms and cosine, key 0")));
  EXPECT_THAT(names_in(out),
              ElementsAre("ar_measure.json", "heads.csv", "layers.csv", "norms.csv", "positions.csv"));
  EXPECT_EQ(json::parse(content_of(folder / "out/ar_measure.json")),
            measured({"--text", text, "--length", "20"}));
  EXPECT_THAT(
      content_of(folder / "out/positions.csv"),
      StartsWith("model,sequences,samples,length,epsilon,sink_position,aggregation,position,sink_rate,"
                 "standard_error,alpha\nsums-llama,natural,3,20,0.3,0,\"mean over layers and heads"));
  const std::string heads = content_of(folder / "out/heads.csv");
  EXPECT_THAT(heads, AllOf(HasSubstr(",other_cosine,5,7,"), HasSubstr(",alpha,0,0,")));
  EXPECT_EQ(std::count(heads.begin(), heads.end(), '\n'), 1 + 6 * 48);
  EXPECT_THAT(content_of(folder / "out/norms.csv"), HasSubstr(",hidden_norm,6,19,"));
  EXPECT_THAT(content_of(folder / "out/layers.csv"), HasSubstr(",massive_ratio,6,"));
}

TEST_F(MeasureAutoregressive, RefusesWhatCannotBe) {
  const std::vector<std::string> model{"measure", "--ar", "sums-llama"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), model.begin(), model.end());
    return more;
  };
  expect_refused({"measure"},
                 "measure takes either run directories (RUN) or an autoregressive model (--ar MODEL)");
  expect_refused({"measure", "run", "--ar", "sums-llama"}, "takes either run directories");
  expect_refused({"measure", "run", "--device", "cpu"}, "--device is of --ar MODEL");
  expect_refused({"measure", "run", "--length", "5"}, "--length is of --ar MODEL");
  expect_refused(with({"--sequences", "random", "--rule", "paper"}), "--rule is of recorded runs (RUN)");
  expect_refused(with({"--sequences", "random", "--calibrate", "0.1"}),
                 "--calibrate is of recorded runs (RUN)");
  expect_refused(with({}), "--ar needs texts: --text FILE.jsonl");
  expect_refused(with({"--sequences", "random", "--text", text}), "--text is of --sequences natural");
  expect_refused(with({"--text", text, "--length", "1"}), "--length 1: at least 2");
  expect_refused(with({"--text", text, "--samples", "0"}), "--samples 0: at least 1");
  expect_refused(with({"--text", text, "--position", "64"}), "--position 64 is none of the 64 positions");
  expect_refused(with({"--text", text, "--epsilon", "-1"}), "--epsilon -1: a number of at least 0");
  expect_refused(with({"--sequences", "random", "--seed", "-1"}), "--seed -1: at least 0");
  expect_refused(with({"--text", text, "--length", "500"}), "holds no text of 500 tokens", 1);
  expect_refused(with({"--sequences", "random", "--samples", "1000000000000"}),
                 "are more than 1000000000 tokens");
  expect_refused(with({"--sequences", "random", "--length", "900000000", "--samples", "1"}), "GiB are free",
                 1);
  expect_refused(with({"--text", folder / "none.jsonl"}), "cannot open", 1);
  write_file(folder / "bad.jsonl", "{\"text\": 1}\n");
  expect_refused(with({"--text", folder / "bad.jsonl"}),
                 "bad.jsonl line 1 must hold a JSON object with the string", 1);
  expect_refused({"measure", "--ar", "sums-llada", "--sequences", "random"},
                 "sums-llada is a diffusion model");
  expect_refused(with({"--sequences", "random", "--out", text}),
                 "is a file; it names the folder for ar_measure.json");
}

}  // namespace
}  // namespace sinkscope
