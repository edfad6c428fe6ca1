// `sinkscope compare` as a user meets it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "record/python.h"
#include "support/planted_trajectory.h"
#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::opening;
using testing::PlantedTrajectory;
using testing::run_program;
using testing::TemporaryFolder;
using testing::TrajectoryRun;
using testing::write_file;

// 24 tokens opened two a step in a random order, confidences everywhere, keys masked from step 1 on. Equal
// seeds give equal ways up to step `parting`.
PlantedTrajectory wandering(unsigned seed, std::size_t parting, unsigned detour) {
  std::mt19937 random(seed), other(detour);
  std::vector<int> places(24);
  std::vector<std::int32_t> tokens(24);
  for (int i = 0; i < 24; ++i) places[i] = i, tokens[i] = static_cast<std::int32_t>(random() % 50);
  std::shuffle(places.begin(), places.end(), random);
  std::shuffle(places.begin() + static_cast<std::ptrdiff_t>(2 * parting), places.end(), other);
  std::vector<std::vector<int>> opened;
  for (std::size_t t = 0; t < 12; ++t) opened.push_back({places[2 * t], places[2 * t + 1]});
  if (detour % 2 == 1) tokens[places[23]] += 1;
  PlantedTrajectory sample = opening(tokens, opened);
  for (auto& row : sample.confidence) {
    for (float& value : row) value = std::isnan(value) ? value : static_cast<float>(other() % 1000) / 1000;
    std::vector<std::uint8_t> keys(row.size());
    if (!sample.masked_keys.empty()) keys[other() % keys.size()] = 1;
    sample.masked_keys.push_back(keys);
  }
  return sample;
}

class Compare : public ::testing::Test {
 protected:
  // Two runs of four samples; b masks keys.
  void SetUp() override {
    TrajectoryRun run_a(a), run_b(b);
    for (unsigned i = 0; i < 4; ++i) {
      PlantedTrajectory plain = wandering(i, 3 * i, 100 + i);
      plain.masked_keys = {};
      run_a.add(i, plain, "right", "right");
      run_b.add(i, wandering(i, 3 * i, 200 + i), i == 0 ? "right" : "wrong", "right");
    }
    run_a.end();
    run_b.end();
  }
  json compare(std::vector<std::string> options = {}) const { return compare(a, b, std::move(options)); }
  static json compare(const std::string& one, const std::string& other,
                      std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"compare", one, other, "--json", "--quiet"});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(result.error, "");
    return json::parse(result.out);
  }
  // A run of the program itself.
  std::string generate(const std::string& name, const std::string& model,
                       std::vector<std::string> options) const {
    const std::string run = folder / name;
    options.insert(options.begin(), {"run", model, "--quiet", "--threads", "1", "--run-dir", run});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 0) << result.error;
    return run;
  }
  TemporaryFolder folder;
  std::string a = folder / "a", b = folder / "b";
};

void expect_close(const json& value, const json& expected, const std::string& what) {
  if (expected.is_null()) {
    EXPECT_TRUE(value.is_null()) << what;
    return;
  }
  ASSERT_TRUE(value.is_number()) << what;
  EXPECT_NEAR(value.get<double>(), expected.get<double>(), 1e-12 * (1 + std::abs(expected.get<double>())))
      << what;
}

void expect_reference(const std::string& python, const std::string& a, const std::string& b,
                      const json& compared) {
  const auto judged = test::run_program(python + " " + SINKSCOPE_SOURCE_DIR +
                                        "/tests/measure/compare_reference.py " + a + " " + b);
  ASSERT_EQ(judged.status, 0) << judged.output;
  const json expected = json::parse(judged.output);
  for (const char* field : {"parts_at", "kendall_tau", "share_equal"})
    for (std::size_t i = 0; i < expected[field].size(); ++i)
      expect_close(compared["samples"][i][field], expected[field][i], field);
  for (const char* part : {"before_parting", "all_steps", "keys_masked"})
    for (const auto& [name, value] : expected[part].items())
      expect_close(compared["pooled"]["confidence"][part][name], value, std::string(part) + " " + name);
}

TEST_F(Compare, AgreesWithNumPy) {
  REQUIRE_NUMPY(python);
  const json compared = compare();
  expect_reference(*python, a, b, compared);
  EXPECT_EQ(compared["pooled"]["mean_parts_at"], 1 + (0 + 3 + 6 + 9) / 4.0);
}

TEST_F(Compare, ShowsTables) {
  const auto result = run_program({"compare", a, b});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("a: " + a + ", planted, 4 samples"), HasSubstr("b: " + b),
                                HasSubstr("Kendall tau"), HasSubstr("before the trajectories part"),
                                HasSubstr("where b removed keys"), HasSubstr("McNemar")));
  EXPECT_THAT(result.out, HasSubstr("3, 0"));
}

TEST_F(Compare, WritesTheSameNumbersAsJsonAndCsv) {
  const json printed = compare({"--out", folder / "new/out"});
  EXPECT_EQ(json::parse(content_of(folder / "new/out/compare.json")), printed);
  EXPECT_THAT(testing::names_in(folder / "new/out"), ElementsAre("compare.json", "samples.csv"));
  const std::string samples = content_of(folder / "new/out/samples.csv");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 5);
  EXPECT_THAT(samples, HasSubstr("," + printed["samples"][2]["kendall_tau"].dump() + ","));
}

TEST_F(Compare, EveryOptionChangesWhatItShould) {
  const auto interval = [&](std::vector<std::string> options) {
    return compare(std::move(options))["pooled"]["confidence"]["keys_masked"]["interval"];
  };
  const json plain = interval({});
  EXPECT_EQ(interval({"--resamples", "10000", "--seed", "0"}), plain);
  // Of three samples there are ten different resamples: a few draws show the seed, many do not.
  const json few = interval({"--resamples", "2"});
  EXPECT_NE(few, plain);
  EXPECT_NE(interval({"--resamples", "2", "--seed", "1"}), few);
}

TEST_F(Compare, WrongUseIsNamed) {
  const auto refused = [&](std::vector<std::string> options, const std::string& message) {
    options.insert(options.begin(), {"compare", a});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  };
  refused({}, "RUN_B");
  refused({b, "--resamples", "0"}, "--resamples is 0; 1 to");
  refused({b, "--seed", "-1"}, "--seed is -1");
  refused({b, "--out", a + "/run.json"}, "is a file");
}

TEST_F(Compare, ABrokenRunLeavesNothingBehind) {
  const std::string whole = content_of(folder / "b/sample_00003.npz");
  write_file(folder / "b/sample_00003.npz", whole.substr(0, whole.size() / 2));
  const auto result = run_program({"compare", a, b, "--out", folder / "out", "--quiet"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("b/sample_00003.npz"));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1);
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(Compare, SaysWhatIsLeftOutUnlessQuiet) {
  std::filesystem::remove(folder / "b/sample_00003.npz");
  write_file(folder / "b/samples.jsonl", "{\"index\": 0}\n{\"index\": 1}\n{\"index\": 2}\n");
  EXPECT_THAT(run_program({"compare", a, b}).error, HasSubstr("samples left out: only in a: 3"));
  EXPECT_EQ(compare()["left_out"][0]["index"], 3);
}

TEST_F(Compare, ARealDiffusionRunAndTheSameWithSinksMasked) {
  const std::vector<std::string> options{"--prompt", "The cat", "--prompt", "Once upon a time", "--gen-len",
                                         "32",       "--steps", "16",       "--block-len",      "16"};
  const std::string plain = generate("plain", "tiny-llada", options);
  std::vector<std::string> masking = options;
  masking.insert(masking.end(), {"--sink-top-k", "5"});
  const std::string masked = generate("masked", "tiny-llada", masking);

  const json same = compare(plain, generate("again", "tiny-llada", options))["pooled"];
  EXPECT_EQ(same["outputs_equal"], 2);
  EXPECT_EQ(same["parted"], 0);
  EXPECT_EQ(same["kendall_tau"], 1);
  EXPECT_EQ(same["confidence"]["all_steps"]["largest"], 0);

  const json compared = compare(plain, masked);
  EXPECT_TRUE(compared["a"]["intervention"].is_null());
  EXPECT_EQ(compared["b"]["intervention"]["top_k"], 5);
  EXPECT_EQ(compared["pooled"]["parted"], 2);
  for (const json& sample : compared["samples"]) {
    // Step 0 masks nothing: its forward, and the state of step 1, are the same.
    EXPECT_GE(sample["parts_at"], 2);
    EXPECT_GE(sample["confidence"]["keys_masked"]["steps"], 1);
    EXPECT_GT(sample["confidence"]["keys_masked"]["largest"], 0);
    EXPECT_LT(sample["kendall_tau"], 1);
  }
  REQUIRE_NUMPY(python);
  expect_reference(*python, plain, masked, compared);
}

TEST_F(Compare, ARealAutoregressiveRunAndTheSameWithSinksMasked) {
  const std::vector<std::string> options{"--raw", "--prompt", "Once upon a time", "--gen-len", "24"};
  const std::string plain = generate("plain", "stories260k", options);
  std::vector<std::string> masking = options;
  masking.insert(masking.end(), {"--sink-top-k", "5"});
  const json compared = compare(plain, generate("masked", "stories260k", masking));
  const json& sample = compared["samples"][0];
  EXPECT_EQ(compared["kind"], "autoregressive");
  EXPECT_EQ(sample["tokens"]["a"], 24);
  EXPECT_GE(sample["first_difference"], 1) << "nothing is masked while the prompt is read";
  // samples.jsonl has the tokens too.
  const auto ids = [&](const std::string& run) {
    return json::parse(content_of(run + "/samples.jsonl"))["output_ids"].get<std::vector<int>>();
  };
  const std::vector<int> ids_a = ids(plain), ids_b = ids(folder / "masked");
  const auto [first, ignored] = std::mismatch(ids_a.begin(), ids_a.end(), ids_b.begin(), ids_b.end());
  EXPECT_EQ(sample["first_difference"], first - ids_a.begin());
  EXPECT_EQ(run_program({"compare", plain, a}).status, 1) << "of different kinds";
}

TEST_F(Compare, ManySamplesTakeTheMemoryOfOne) {
  PlantedTrajectory sample = wandering(1, 3, 1);
  const auto wider = [](auto& rows, auto value) {
    for (auto& row : rows) row.resize(40000, value);
  };
  wider(sample.states, 7);
  wider(sample.confidence, NAN);
  wider(sample.masked_keys, std::uint8_t{1});  // 4 MiB in all
  for (const auto& [name, count] : {std::pair("one", 1), {"many", 30}}) {
    std::filesystem::create_directory(folder / name);
    std::filesystem::copy_file(a + "/run.json", folder / name / "run.json");
    std::string lines;
    sample.write(sample_path(folder / name, 0));
    for (int i = 0; i < count; ++i) {
      lines += "{\"index\":" + std::to_string(i) + "}\n";
      if (i > 0)
        std::filesystem::create_hard_link(sample_path(folder / name, 0), sample_path(folder / name, i));
    }
    write_file(folder / name / "samples.jsonl", lines);
  }
  const auto run = [&](const std::string& name) {
    return run_program({"compare", folder / name, folder / name, "--quiet"});
  };
  const auto few = run("one"), all = run("many");
  ASSERT_EQ(all.status, 0) << all.error;
  EXPECT_LT(all.peak_kib, few.peak_kib + 8 * 1024);
}

}  // namespace
}  // namespace sinkscope
