#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>
#include <sinkscope/run_directory.h>
#include <sinkscope/sample_writer.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/json.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using testing::names_in;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::write_file;

RunInfo example_info() {
  RunInfo info;
  info.version = "0.1.0";
  info.command = "run";
  info.options = {{"steps", 4}, {"gen_len", 8}, {"array_dtype", "f16"}, {"a_list", {1, 2}}};
  info.model = {"LLaDA", "llada", 32, 32, 32, 126336, "c0ffee", "beef"};
  info.sink.top_k = 5;
  info.machine = {"A processor", {"avx2"}, 2, 1 << 30, "Linux", "cpu"};
  return info;
}

SampleRecord example_record(std::int64_t index) {
  SampleRecord record;
  record.index = index;
  record.id = "gsm8k/" + std::to_string(index);
  record.prompt = "2 + 2?";
  record.prompt_ids = {17, 10, 17};
  record.text = "4";
  record.output_ids = {19, 126081};
  record.steps = record.forward_passes = 4;
  record.seconds = 1.5;
  return record;
}

// The smallest npz, where a sampler would put the arrays.
void write_arrays(const std::filesystem::path& folder, std::int64_t index) {
  NpzWriter writer(sample_path(folder, index));
  writer.add("states", {1}, std::vector<std::int32_t>{static_cast<std::int32_t>(index)});
  writer.finish();
}

void add_sample(RunDirectory& run, std::int64_t index) {
  write_arrays(run.folder(), index);
  run.add_sample(example_record(index));
}

TEST(RunFolder, IsNamedByTimeAndShape) {
  std::tm local{};
  local.tm_year = 126, local.tm_mon = 0, local.tm_mday = 31, local.tm_hour = 7, local.tm_min = 5,
  local.tm_sec = 9;
  local.tm_isdst = -1;
  const std::time_t time = std::mktime(&local);
  EXPECT_EQ(run_folder_name({128, 256, 32}, time), "T0131_070509-S128-L256-B32");
  EXPECT_EQ(run_folder_name({128, 256, {}}, time), "T0131_070509-S128-L256");
  EXPECT_EQ(run_folder_name({{}, 256, {}}, time), "T0131_070509-L256");
}

TEST(RunFolder, GetsASuffixWhereTheNameIsTaken) {
  const TemporaryFolder folder;
  const RunName name{4, 8, 8};
  const std::string first = run_folder_name(name, 0);
  EXPECT_EQ(make_run_folder(folder / "a/runs", name, 0), folder / "a/runs" / first);
  EXPECT_EQ(make_run_folder(folder / "a/runs", name, 0), folder / "a/runs" / (first + "-2"));
  EXPECT_EQ(make_run_folder(folder / "a/runs", name, 0), folder / "a/runs" / (first + "-3"));
}

TEST(RunFolder, IsMadeOnceForEachOfManyAtOnce) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      RunDirectory::create(make_run_folder(folder / "runs", {4, 8, 8}, 0), example_info());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(names_in(folder / "runs").size(), 8U);
}

TEST(RunFolder, APlaceThatCannotHoldItIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  EXPECT_THAT(
      [&] {
        make_run_folder(folder / "file", {4, 8, 8}, 0);
      },
      ThrowsMessage<Error>(HasSubstr((folder / "file").string())));
  EXPECT_THAT(
      [&] {
        make_run_folder(folder / "file/runs", {4, 8, 8}, 0);
      },
      ThrowsMessage<Error>(HasSubstr("file/runs")));
}

TEST(RunDirectory, WritesRunJsonFieldByField) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  const auto json = nlohmann::ordered_json::parse(content_of(folder / "run/run.json"));
  EXPECT_THAT(json.at("started").get<std::string>(), MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_TRUE(json.at("ended").is_null());
  auto timeless = json;
  timeless["started"] = "now";
  EXPECT_EQ(
      timeless.dump(),
      R"({"format":1,"version":"0.1.0","command":"run","options":{"steps":4,"gen_len":8,"array_dtype":"f16","a_list":[1,2]},)"
      R"("model":{"name":"LLaDA","family":"llada","layers":32,"heads":32,"kv_heads":32,"mask_id":126336,"config_sha256":"c0ffee","weights_sha256":"beef"},)"
      R"("sink":{"rule":"paper","scale":"sum","epsilon":0.0,"top_k":5,"from":"raw","exclude_self":false,"mask_sink_ratio":1.0,"control":"none","action":"remove"},)"
      R"("machine":{"cpu":"A processor","instruction_sets":["avx2"],"threads":2,"memory_bytes":1073741824,"os":"Linux","device":"cpu"},)"
      R"("started":"now","ended":null})");
  run.end();
  EXPECT_THAT(*read_run_info(folder / "run").ended, MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_THAT(names_in(folder / "run"), ElementsAre("run.json", "samples.jsonl"));
}

TEST(RunDirectory, WritesSamplesFieldByField) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  write_arrays(folder / "run", 3);
  SampleRecord record = example_record(3);
  record.text = "line\nbreak and broken \xff UTF-8";
  run.add_sample(record);
  add_sample(run, 1);
  EXPECT_EQ(content_of(folder / "run/samples.jsonl"),
            "{\"index\":3,\"id\":\"gsm8k/3\",\"prompt\":\"2 + "
            "2?\",\"prompt_ids\":[17,10,17],\"text\":\"line\\nbreak and broken \xef\xbf\xbd UTF-8\","
            "\"output_ids\":[19,126081],\"steps\":4,\"forward_passes\":4,\"masks_left\":0,\"confidence_"
            "ties\":0,\"empty_rows\":0,\"seconds\":1.5}\n"
            "{\"index\":1,\"id\":\"gsm8k/1\",\"prompt\":\"2 + 2?\",\"prompt_ids\":[17,10,17],\"text\":\"4\","
            "\"output_ids\":[19,126081],\"steps\":4,\"forward_passes\":4,\"masks_left\":0,\"confidence_"
            "ties\":0,\"empty_rows\":0,\"seconds\":1.5}\n");
  EXPECT_THAT(run.finished(), ElementsAre(1, 3));
}

TEST(RunDirectory, ItsEndPutsTheSamplesInOrder) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  for (const std::int64_t index : {2, 0, 1}) add_sample(run, index);
  const auto indices = [&] {
    std::vector<std::int64_t> found;
    for (const SampleRecord& record : read_samples(run.folder())) found.push_back(record.index);
    return found;
  };
  EXPECT_THAT(indices(), ElementsAre(2, 0, 1));
  run.end();
  EXPECT_THAT(indices(), ElementsAre(0, 1, 2));
  add_sample(run, 3);  // it is still this run's file
  EXPECT_THAT(indices(), ElementsAre(0, 1, 2, 3));
}

TEST(RunDirectory, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  write_arrays(folder / "run", 0);
  SampleRecord record = example_record(0);
  record.reference = "4";
  record.masks_left = 1, record.confidence_ties = 2, record.empty_rows = 1LL << 40;
  run.add_sample(record);
  const RunInfo info = read_run_info(folder / "run");
  EXPECT_EQ(info.options.dump(), example_info().options.dump());
  EXPECT_EQ(info.model.mask_id, 126336);
  EXPECT_EQ(info.sink.top_k, 5);
  EXPECT_THAT(info.machine.instruction_sets, ElementsAre("avx2"));
  EXPECT_EQ(info.started, run.info().started);
  EXPECT_FALSE(info.ended.has_value());
  const SampleRecord back = read_samples(folder / "run").at(0);
  EXPECT_EQ(back.id, "gsm8k/0");
  EXPECT_EQ(back.reference, "4");
  EXPECT_EQ(back.prompt_ids, record.prompt_ids);
  EXPECT_EQ(back.output_ids, record.output_ids);
  EXPECT_EQ(back.empty_rows, 1LL << 40);
  EXPECT_EQ(back.seconds, 1.5);
}

TEST(RunDirectory, TakesAnEmptyFolderButNoUsedOne) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  { RunDirectory::create(folder / "empty", example_info()); }
  EXPECT_THAT([&] { RunDirectory::create(folder / "empty", example_info()); },
              ThrowsMessage<UsageError>(HasSubstr("--resume")));
  write_file(folder / "file", "");
  EXPECT_THAT([&] { RunDirectory::create(folder / "file", example_info()); },
              ThrowsMessage<UsageError>(HasSubstr("is a file")));
}

TEST(RunDirectory, RefusesASampleTwiceAndOneWithoutArrays) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  add_sample(run, 0);
  EXPECT_THAT([&] { run.add_sample(example_record(0)); },
              ThrowsMessage<Error>(HasSubstr("sample 0 is recorded already")));
  EXPECT_THAT([&] { run.add_sample(example_record(-1)); }, ThrowsMessage<Error>(HasSubstr("sample -1")));
  EXPECT_THAT([&] { run.add_sample(example_record(7)); },
              ThrowsMessage<Error>(HasSubstr("sample_00007.npz is missing")));
}

TEST(RunDirectory, OneWriterAtATime) {
  const TemporaryFolder folder;
  {
    const RunDirectory run = RunDirectory::create(folder / "run", example_info());
    EXPECT_THAT([&] { RunDirectory::resume(folder / "run"); },
                ThrowsMessage<UsageError>(HasSubstr("another process is writing")));
  }
  const RunDirectory again = RunDirectory::resume(folder / "run");
  EXPECT_THROW(RunDirectory::resume(folder / "run"), UsageError);
}

TEST(RunDirectory, AFullDiskLeavesWholeLines) {
  const TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "run", example_info());
  add_sample(run, 0);
  write_arrays(folder / "run", 1);
  const std::string before = content_of(folder / "run/samples.jsonl");
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{}, limit{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  limit = {before.size() + 10, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THAT([&] { run.add_sample(example_record(1)); }, ThrowsMessage<Error>(HasSubstr("samples.jsonl: ")));
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content_of(folder / "run/samples.jsonl"), before);
  EXPECT_THAT(run.finished(), ElementsAre(0));
  run.add_sample(example_record(1));
  EXPECT_EQ(read_samples(folder / "run").size(), 2U);
}

TEST(Resume, GoesOnWhereTheRunStopped) {
  const TemporaryFolder folder;
  {
    RunDirectory run = RunDirectory::create(folder / "run", example_info());
    add_sample(run, 0);
    add_sample(run, 2);
    run.end();
  }
  const std::string started = read_run_info(folder / "run").started;
  RunDirectory run = RunDirectory::resume(folder / "run");
  EXPECT_THAT(run.finished(), ElementsAre(0, 2));
  EXPECT_FALSE(read_run_info(folder / "run").ended.has_value()) << "it runs again";
  EXPECT_EQ(run.info().started, started);
  EXPECT_EQ(run.info().options.dump(), example_info().options.dump());
  add_sample(run, 1);
  EXPECT_EQ(read_samples(folder / "run").size(), 3U);
}

TEST(Resume, CutsOffATornLine) {
  for (const std::string torn : {"{\"index\":1,\"id\":\"x", "{\"index\":1}", "{\"index\":1,\"te\n"}) {
    const TemporaryFolder folder;
    {
      RunDirectory run = RunDirectory::create(folder / "run", example_info());
      add_sample(run, 0);
      write_arrays(folder / "run", 1);
    }
    const std::string sound = content_of(folder / "run/samples.jsonl");
    write_file(folder / "run/samples.jsonl", sound + torn);
    EXPECT_EQ(read_samples(folder / "run").size(), 1U);
    RunDirectory run = RunDirectory::resume(folder / "run");
    EXPECT_THAT(run.finished(), ElementsAre(0));
    EXPECT_EQ(content_of(folder / "run/samples.jsonl"), sound);
    add_sample(run, 1);  // its arrays are overwritten
    EXPECT_EQ(read_samples(folder / "run").size(), 2U);
  }
}

TEST(Resume, DropsLinesWhoseArraysAreMissing) {
  const TemporaryFolder folder;
  {
    RunDirectory run = RunDirectory::create(folder / "run", example_info());
    for (const int index : {0, 1, 2}) add_sample(run, index);
  }
  std::filesystem::remove(sample_path(folder / "run", 1));
  RunDirectory run = RunDirectory::resume(folder / "run");
  EXPECT_THAT(run.finished(), ElementsAre(0, 2));
  EXPECT_THROW(RunDirectory::resume(folder / "run"), UsageError) << "the new samples.jsonl is locked as well";
  add_sample(run, 1);
  std::vector<std::int64_t> order;
  for (const SampleRecord& record : read_samples(folder / "run")) order.push_back(record.index);
  EXPECT_THAT(order, ElementsAre(0, 2, 1));
  EXPECT_THAT(names_in(folder / "run"), ElementsAre("run.json", "sample_00000.npz", "sample_00001.npz",
                                                    "sample_00002.npz", "samples.jsonl"));
}

TEST(Resume, RemovesOnlyItsOwnLeftovers) {
  const TemporaryFolder folder;
  { RunDirectory::create(folder / "run", example_info()); }
  std::filesystem::create_directory(folder / "run/sample_00004.npz.123-0.tmp");
  write_file(folder / "run/sample_00004.npz.123-0.tmp/array-0", "x");
  write_file(folder / "run/run.json.tmp", "x");
  write_file(folder / "run/notes.tmp", "the user's");
  RunDirectory::resume(folder / "run");
  EXPECT_THAT(names_in(folder / "run"), ElementsAre("notes.tmp", "run.json", "samples.jsonl"));
}

// The process dies without any chance to clean up: in the middle of a sample, or at its end.
class KilledRun : public ::testing::TestWithParam<bool> {};

TEST_P(KilledRun, CanBeResumed) {
  const bool arrays_done = GetParam();
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      RunDirectory run = RunDirectory::create(folder / "run", example_info());
      add_sample(run, 0);
      NpzWriter writer(sample_path(run.folder(), 1));
      writer.declare("states", ArrayType::int32, {2});
      writer.append("states", std::vector<std::int32_t>{1, 2});
      if (arrays_done) writer.finish();
      ::kill(::getpid(), SIGKILL);
    } catch (...) {
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(names_in(folder / "run").size(), arrays_done ? 5U : 4U) << "something is left to clean up";
  RunDirectory run = RunDirectory::resume(folder / "run");
  EXPECT_THAT(run.finished(), ElementsAre(0));
  add_sample(run, 1);
  run.end();
  EXPECT_EQ(read_samples(folder / "run").size(), 2U);
  EXPECT_THAT(names_in(folder / "run"),
              ElementsAre("run.json", "sample_00000.npz", "sample_00001.npz", "samples.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(BeforeAndAfterTheArrays, KilledRun, ::testing::Bool());

TEST(Resume, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { RunDirectory::resume(folder / "none"); },
              ThrowsMessage<Error>(HasSubstr("none is no run directory: it has no run.json")));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(ReadRun, NeedsLittleFromRunsMadeElsewhere) {
  const TemporaryFolder folder;
  write_file(folder / "run.json", R"({"format":1,"model":{"layers":2,"heads":3,"mask_id":null}})");
  write_file(folder / "samples.jsonl", "{\"index\":5}\n{\"index\":0,\"reference\":null,\"more\":{}}\n");
  EXPECT_EQ(read_run_info(folder.path()).model.heads, 3);
  EXPECT_FALSE(read_run_info(folder.path()).model.mask_id.has_value());
  EXPECT_EQ(read_samples(folder.path()).at(0).index, 5);
  EXPECT_FALSE(read_samples(folder.path()).at(1).reference.has_value());
}

TEST(ReadRun, NamesTheFieldAtFault) {
  const auto refusal = [](const std::string& json, const std::string& message) {
    const TemporaryFolder folder;
    write_file(folder / "run.json", json);
    EXPECT_THAT([&] { read_run_info(folder.path()); }, ThrowsMessage<Error>(HasSubstr("run.json" + message)));
  };
  refusal("[]", " is an array, not an object");
  refusal("{", " is not valid JSON");
  refusal(R"({"model":{}})", ": format is missing");
  refusal(R"({"format":2,"model":{}})", " has format 2; this version reads format 1");
  refusal(R"({"format":1})", ": model is missing");
  refusal(R"({"format":1,"model":[]})", ": model is an array");
  refusal(R"({"format":1,"model":{"layers":2,"mask_id":1}})", ": model.heads is missing");
  refusal(R"({"format":1,"model":{"layers":2,"heads":2}})", ": model.mask_id is missing");
  refusal(R"({"format":1,"model":{"layers":2.5,"heads":2,"mask_id":1}})", ": model.layers cannot be 2.5");
  refusal(R"({"format":1,"model":{"layers":2,"heads":2,"mask_id":4294967296}})",
          ": model.mask_id cannot be 4294967296");
  refusal(R"({"format":1,"model":{"layers":2,"heads":2,"mask_id":1},"machine":{"instruction_sets":"avx"}})",
          ": machine.instruction_sets is no list");
}

TEST(ReadRun, NamesTheLineAtFault) {
  const auto refusal = [](const std::string& lines, const std::string& message) {
    const TemporaryFolder folder;
    write_file(folder / "samples.jsonl", lines);
    EXPECT_THAT([&] { read_samples(folder.path()); },
                ThrowsMessage<Error>(HasSubstr("samples.jsonl" + message)));
  };
  refusal("{\"index\":0}\n{\"index\":0}\n", " line 2: index 0 stands on an earlier line already");
  refusal("{\"index\":0}\nbroken\n{\"index\":1}\n", " line 2 is not valid JSON");
  refusal("{\"index\":0}\n{\"id\":\"x\"}\n", " line 2: index is missing");
  refusal("{\"index\":-1}\n", " line 1: index is -1");
  refusal("{\"index\":0,\"prompt_ids\":[1,null]}\n", " line 1: prompt_ids cannot be null");
}

TEST(Machine, IsDescribed) {
  const RunMachine machine = describe_machine(3, "cuda:1");
  EXPECT_EQ(machine.threads, 3);
  EXPECT_EQ(machine.device, "cuda:1");
  EXPECT_GT(machine.memory_bytes, 1 << 20);
  EXPECT_THAT(machine.os, HasSubstr(" "));
#if defined(__x86_64__)
  EXPECT_THAT(machine.cpu, ::testing::Not(IsEmpty()));
  EXPECT_THAT(machine.instruction_sets, ::testing::Contains("sse4_2"));
#endif
}

}  // namespace
}  // namespace sinkscope
