// `sinkscope fetch` against a hub on this machine that behaves well and badly.
#include <gmock/gmock.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "hub/checksum.h"
#include "hub/hub_server.h"
#include "support/program.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HubServer;
using ::testing::Not;
using testing::ProgramResult;
using testing::run_program;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

const std::string commit = [] {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "c0";
  return text;
}();

std::string large_content(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + (i * i + i / 7) % 26);
  return content;
}

// A repository a/b with a small and a large file, and a cache of its own for each test.
class Fetch : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new HubServer; }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    server_->clear();
    server_->add("a/b/config.json", config_);
    server_->add("a/b/model.safetensors", large_);
  }

  void set_environment() const {
    for (const char* name :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "http_proxy",
          "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"})
      ::unsetenv(name);
    ::setenv("HF_ENDPOINT", server_->endpoint().c_str(), 1);
    ::setenv("HF_HOME", folder_.path().c_str(), 1);
    ::setenv("HF_HUB_CACHE", cache().c_str(), 1);
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ProgramResult run(std::vector<std::string> arguments) const {
    return run_program(arguments, {.in_child = [this] { set_environment(); }});
  }
  ProgramResult fetch(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"fetch", "--retry-wait", "0.02"});
    return run(std::move(arguments));
  }
  // The one sentence of a fetch that fails.
  std::string error_of(const std::vector<std::string>& arguments, int status = 1) const {
    const ProgramResult result = fetch(arguments);
    EXPECT_EQ(result.status, status) << result.error;
    EXPECT_EQ(result.out, "");
    const std::size_t last = result.error.rfind("sinkscope: ");
    return last == std::string::npos ? result.error : result.error.substr(last);
  }

  fs::path cache() const { return folder_ / "hub"; }
  fs::path repository() const { return cache() / "models--a--b"; }
  fs::path snapshot() const { return repository() / "snapshots" / commit; }
  std::string checksum_of(const std::string& content, ChecksumKind kind) const {
    write_file(folder_ / "checked", content);
    return checksum_of_file(folder_ / "checked", kind);
  }
  fs::path large_blob() const { return repository() / "blobs" / checksum_of(large_, ChecksumKind::sha256); }
  fs::path incomplete() const { return large_blob().string() + ".incomplete"; }
  void leave_incomplete(const std::string& content) const {
    fs::create_directories(repository() / "blobs");
    write_file(incomplete(), content);
  }
  // Ranges that were asked of the large file, "" for none.
  std::vector<std::string> ranges() const {
    std::vector<std::string> result;
    for (const auto& request : server_->take_requests())
      if (request.port == "cdn") result.push_back(request.range);
    return result;
  }

  static HubServer* server_;
  const TemporaryFolder folder_;
  const std::string config_ = "{\"a\": 1}\n";
  const std::string large_ = large_content(300'000);
  std::map<std::string, std::string> variables_;
};
HubServer* Fetch::server_ = nullptr;

TEST_F(Fetch, TheCacheIsLaidOutAsHuggingfaceHubDoes) {
  server_->add("a/b/README.md", "# read me\n");
  server_->add("a/b/pytorch_model.bin", large_content(2000));
  const auto result = fetch({"a/b"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.out, snapshot().string() + "\n");
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("2 files"), HasSubstr("left out: 2 files"), HasSubstr("pytorch_model.bin")));

  EXPECT_EQ(content_of(repository() / "refs" / "main"), commit);
  const std::string small = checksum_of(config_, ChecksumKind::git_sha1);
  const std::string large = checksum_of(large_, ChecksumKind::sha256);
  EXPECT_EQ(fs::read_symlink(snapshot() / "config.json"), "../../blobs/" + small);
  EXPECT_EQ(fs::read_symlink(snapshot() / "model.safetensors"), "../../blobs/" + large);
  EXPECT_EQ(content_of(snapshot() / "config.json"), config_);
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(repository()))
    if (!entry.is_directory()) all.push_back(entry.path().lexically_relative(repository()).string());
  std::sort(all.begin(), all.end());
  std::vector<std::string> expected{"blobs/" + small, "blobs/" + large, "refs/main",
                                    "snapshots/" + commit + "/config.json",
                                    "snapshots/" + commit + "/model.safetensors"};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all, expected);
  server_->take_requests();

  const auto again = fetch({"a/b"});
  EXPECT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(again.out, result.out);
  const auto requests = server_->take_requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].path, "/api/models/a/b/revision/main?blobs=true");
}

TEST_F(Fetch, AFetchedModelIsFoundByItsId) {
  const fs::path golden = fs::path(SINKSCOPE_TEST_DATA) / "golden" / "llada-random";
  for (const char* name : {"config.json", "model.safetensors"})
    server_->add("tiny/llada-random/" + std::string(name), content_of(golden / name));
  const auto before = run({"inspect", "tiny/llada-random"});
  EXPECT_EQ(before.status, 1);
  EXPECT_THAT(before.error, HasSubstr("`sinkscope fetch tiny/llada-random` downloads it"));
  ASSERT_EQ(fetch({"tiny/llada-random"}).status, 0);
  const auto found = run({"inspect", "tiny/llada-random"});
  EXPECT_EQ(found.status, 0) << found.error;
  EXPECT_THAT(found.out, HasSubstr("llada"));
}

TEST_F(Fetch, RevisionsAreBranchesTagsOrCommits) {
  ASSERT_EQ(fetch({"a/b@v1"}).status, 0);
  ASSERT_EQ(fetch({"a/b@refs/pr/1"}).status, 0);
  EXPECT_EQ(content_of(repository() / "refs" / "v1"), commit);
  EXPECT_EQ(content_of(repository() / "refs" / "refs" / "pr" / "1"), commit);
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  EXPECT_EQ(server_->take_requests().back().path, "/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true");
  fs::remove_all(repository());
  ASSERT_EQ(fetch({"a/b@" + commit}).status, 0);
  EXPECT_FALSE(fs::exists(repository() / "refs"));
  EXPECT_TRUE(fs::exists(snapshot() / "config.json"));
}

TEST_F(Fetch, PatternsChooseFiles) {
  server_->add("a/b/onnx/weights.onnx", "weights");
  ASSERT_EQ(fetch({"a/b", "--include", "onnx/*", "--include", "*.json", "--exclude", "config*"}).status, 0);
  EXPECT_EQ(fs::read_symlink(snapshot() / "onnx" / "weights.onnx"),
            "../../../blobs/" + checksum_of("weights", ChecksumKind::git_sha1));
  EXPECT_FALSE(fs::exists(snapshot() / "config.json"));
  EXPECT_THAT(error_of({"a/b", "--include", "*.gguf"}),
              AllOf(HasSubstr("\"*.gguf\""), HasSubstr("config.json")));
}

TEST_F(Fetch, JsonTellsWhatCame) {
  server_->add("a/b/README.md", "# read me\n");
  server_->add("a/b/generation_config.json", config_);  // the same content: one blob
  const auto first = fetch({"a/b", "--json", "--quiet"});
  ASSERT_EQ(first.status, 0) << first.error;
  EXPECT_EQ(first.error, "");
  const Json report = Json::parse(first.out);
  EXPECT_EQ(report["repository"], "a/b");
  EXPECT_EQ(report["revision"], "main");
  EXPECT_EQ(report["commit"], commit);
  EXPECT_EQ(report["directory"], snapshot().string());
  EXPECT_EQ(report["received_bytes"], large_.size() + config_.size());
  EXPECT_EQ(report["files"].size(), 3U);
  EXPECT_EQ(report["files"][0]["name"], "config.json");
  EXPECT_EQ(report["files"][0]["blob"], checksum_of(config_, ChecksumKind::git_sha1));
  EXPECT_TRUE(report["files"][0]["downloaded"]);
  EXPECT_TRUE(std::any_of(report["left_out"].begin(), report["left_out"].end(),
                          [](const Json& file) { return file["name"] == "README.md"; }));
  const Json again = Json::parse(fetch({"a/b", "--json", "--quiet"}).out);
  EXPECT_EQ(again["received_bytes"], 0);
  EXPECT_FALSE(again["files"][0]["downloaded"]);
}

TEST_F(Fetch, TheTokenGoesToTheHubOnly) {
  server_->behave({{"token", "secret"}});
  EXPECT_THAT(error_of({"a/b"}), AllOf(HasSubstr("401"), HasSubstr("HF_TOKEN"), HasSubstr("a/b")));
  write_file(folder_ / "token", "wrong\n");
  EXPECT_THAT(error_of({"a/b"}),
              AllOf(HasSubstr("401"), HasSubstr("refuses the token"), HasSubstr("HF_TOKEN")));
  server_->take_requests();
  variables_["HF_TOKEN"] = "secret";
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  int at_hub = 0, at_cdn = 0;
  for (const auto& request : server_->take_requests()) {
    (request.port == "hub" ? at_hub : at_cdn) += 1;
    EXPECT_EQ(request.authorization, request.port == "hub" ? "Bearer secret" : "") << request.path;
  }
  EXPECT_GE(at_hub, 3);
  EXPECT_EQ(at_cdn, 1);
}

TEST_F(Fetch, ACutConnectionIsContinued) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"times", 1}, {"cut", 1000}}}}});
  const auto result = fetch({"a/b"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("trying again in"));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
  EXPECT_THAT(ranges(), ElementsAre("", "bytes=1000-"));
}

TEST_F(Fetch, AServerThatAlwaysCutsIsGivenUpAndThePartKept) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"cut", 1000}}}}});
  EXPECT_THAT(error_of({"a/b", "--retries", "2"}), AllOf(HasSubstr("model.safetensors of a/b broke off"),
                                                         HasSubstr("tried 3 times"), HasSubstr("kept")));
  EXPECT_EQ(content_of(incomplete()), large_.substr(0, 3000));
  EXPECT_FALSE(fs::exists(repository() / "refs"));
  EXPECT_THAT(run({"inspect", "a/b"}).error, HasSubstr("`sinkscope fetch a/b`"));
  server_->behave(Json::object());
  server_->take_requests();
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_THAT(ranges(), ElementsAre("bytes=3000-"));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
  EXPECT_FALSE(fs::exists(incomplete()));
}

TEST_F(Fetch, AServerThatIgnoresTheRangeSendsTheWhole) {
  leave_incomplete(large_.substr(0, 5000));
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"ignore_range", true}}}}});
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-"));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
}

TEST_F(Fetch, AnInterruptedFileThatIsWholeIsOnlyChecked) {
  leave_incomplete(large_);
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_THAT(ranges(), ElementsAre());
  EXPECT_EQ(content_of(large_blob()), large_);
}

TEST_F(Fetch, ARangeThatCannotBeSatisfiedBeginsAnew) {
  leave_incomplete(large_.substr(0, 5000));
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"times", 1}, {"status", 416}}}}});
  const auto result = fetch({"a/b", "--retries", "0"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-", ""));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
}

TEST_F(Fetch, PiecesThatDoNotFitAreFetchedAnewOnce) {
  leave_incomplete(std::string(5000, 'x'));
  const auto result = fetch({"a/b"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("do not fit together"));
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-", ""));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
  // So is what is longer than the file.
  fs::remove_all(repository());
  leave_incomplete(std::string(large_.size() + 1, 'x'));
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
}

TEST_F(Fetch, AWrongChecksumIsNamedAndNothingKept) {
  std::string other = large_;
  other[1234] ^= 1;
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"body", other}}}}});
  EXPECT_THAT(error_of({"a/b"}),
              AllOf(HasSubstr("model.safetensors of a/b: the checksum is"), HasSubstr("removed")));
  EXPECT_FALSE(fs::exists(incomplete()));
  EXPECT_FALSE(fs::exists(large_blob()));
  server_->behave({{"rules", {{{"path", "config.json"}, {"body", "{\"a\": 2}\n"}}}}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("config.json of a/b: the checksum is"));
}

TEST_F(Fetch, AWrongSizeIsNamed) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"body", "short"}}}}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("the server offers 5 bytes, the hub's list says 300000"));
  server_->behave(
      {{"rules", {{{"path", "model.safetensors"}, {"body", large_ + "x"}, {"no_length", true}}}}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("sends more than the 300000 bytes"));
  fs::remove(incomplete());
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"body", "short"}, {"no_length", true}}}}});
  EXPECT_THAT(error_of({"a/b", "--retries", "0"}), HasSubstr("5 of 300000 bytes came"));
  leave_incomplete(large_.substr(0, 5000));
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"content_range", "bytes 0-294999/300000"}}}}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("asked for the bytes from 5000 on"));
}

TEST_F(Fetch, TroubleThatPassesIsWaitedFor) {
  server_->behave({{"rules",
                    {{{"path", "/api/"}, {"times", 1}, {"status", 502}},
                     {{"path", "config.json"}, {"times", 2}, {"status", 503}},
                     {{"path", "model.safetensors"},
                      {"times", 1},
                      {"status", 429},
                      {"headers", {{"Retry-After", "1"}}}}}}});
  const auto begin = std::chrono::steady_clock::now();
  const auto result = fetch({"a/b"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_THAT(result.error, AllOf(HasSubstr("trouble (502)"), HasSubstr("trouble (503)"), HasSubstr("(429)"),
                                  HasSubstr("trying again in 1.0 s")));
}

TEST_F(Fetch, TroubleThatStaysIsSaid) {
  server_->behave({{"rules", {{{"path", "/api/"}, {"status", 500}}}}});
  EXPECT_THAT(error_of({"a/b", "--retries", "1"}),
              AllOf(HasSubstr("trouble (500) with a/b"), HasSubstr("tried 2 times")));
  server_->behave({{"rules", {{{"path", "/api/"}, {"status", 429}, {"headers", {{"Retry-After", "0"}}}}}}});
  EXPECT_THAT(error_of({"a/b", "--retries", "0"}), HasSubstr("too many requests (429)"));
}

TEST_F(Fetch, WhatTheHubRefusesIsSaidWithoutASecondTry) {
  const auto with_rule = [&](const std::string& path, int status, const Json& headers) {
    server_->behave({{"rules", {{{"path", path}, {"status", status}, {"headers", headers}}}}});
    server_->take_requests();
    return error_of({"a/b"});
  };
  EXPECT_THAT(with_rule("model.safetensors", 403, {{"X-Error-Code", "GatedRepo"}}),
              AllOf(HasSubstr("model.safetensors of a/b is gated"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(with_rule("config.json", 403, Json::object()),
              AllOf(HasSubstr("(403)"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(with_rule("config.json", 404, Json::object()), HasSubstr("there is no config.json of a/b"));
  EXPECT_THAT(with_rule("/api/", 403, {{"X-Error-Message", "go away"}}), HasSubstr("it says \"go away\""));
  EXPECT_EQ(server_->take_requests().size(), 1U);
  server_->behave(Json::object());
  EXPECT_THAT(error_of({"a/none"}), HasSubstr("no repository a/none"));
  EXPECT_THAT(error_of({"a/b@v9"}), HasSubstr("a/b has no revision v9"));
  EXPECT_FALSE(fs::exists(cache() / "models--a--none"));
}

TEST_F(Fetch, HostileAnswersAreRefused) {
  const std::string list_name = "list_name";
  for (const char* name : {"../../evil", "/tmp/evil", "a/../../evil", "e\x1b[31m"}) {
    server_->behave({{"rules", {{{"path", "config.json"}, {list_name, name}}}}});
    EXPECT_THAT(error_of({"a/b"}), HasSubstr("plain relative path")) << name;
  }
  server_->behave({{"rules", {{{"path", "config.json"}, {"list_sha", "../../evil"}}}}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("40 hexadecimal digits"));
  server_->behave({{"answer", "<html>hello"}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("is not valid JSON"));
  server_->behave({{"answer", "{}"}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("has no sha"));
  server_->behave({{"answer", std::string(70 << 20, ' ')}});
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("is longer than"));
  server_->behave(Json::object());
  EXPECT_THAT(error_of({"a/b@" + std::string(40, 'd')}),
              AnyOf(HasSubstr("has no revision"), HasSubstr("commit")));
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(Fetch, TooLittleRoomIsSaidBeforehand) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"list_size", 10'000'000'000'000}}}}});
  if (fs::space(folder_.path()).available > 10'000'000'000'000U)
    GTEST_SKIP() << "this disk has room for anything";
  EXPECT_THAT(error_of({"a/b"}), AllOf(HasSubstr("a/b needs 10000.00 GB"), HasSubstr("HF_HUB_CACHE")));
  EXPECT_EQ(server_->take_requests().size(), 1U);
}

TEST_F(Fetch, ADeadServerIsGivenUp) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"wait", 30}}}}});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of({"a/b", "--timeout", "1", "--retries", "0"}),
              HasSubstr("model.safetensors of a/b broke off"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  variables_["HF_ENDPOINT"] = "http://127.0.0.1:1";
  EXPECT_THAT(error_of({"a/b"}),
              AllOf(HasSubstr("cannot reach http://127.0.0.1:1"), Not(HasSubstr("tried"))));
  variables_["HF_ENDPOINT"] = "https" + server_->endpoint().substr(4);
  EXPECT_THAT(error_of({"a/b"}), HasSubstr("TLS"));
}

TEST_F(Fetch, AKilledFetchGoesOn) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"wait", 30}}}}});
  const auto killed =
      run_program({"fetch", "a/b"}, {.in_child = [this] { set_environment(); },
                                     .meanwhile =
                                         [this](pid_t child) {
                                           const auto has_ten_bytes = [this] {
                                             std::error_code none;
                                             return fs::file_size(incomplete(), none) == 10;
                                           };
                                           for (int i = 0; i < 500 && !has_ten_bytes(); ++i)
                                             std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                           ::kill(child, SIGKILL);
                                         }});
  EXPECT_EQ(killed.status, 128 + SIGKILL);
  server_->behave(Json::object());
  server_->take_requests();
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_THAT(ranges(), ElementsAre("bytes=10-"));
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
}

TEST_F(Fetch, TwoFetchesOfTheSameShareTheWork) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"wait", 0.5}}}}});
  std::vector<ProgramResult> results(3);
  {
    std::vector<std::jthread> threads;
    for (ProgramResult& result : results) threads.emplace_back([this, &result] { result = fetch({"a/b"}); });
  }
  for (const ProgramResult& result : results) EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(ranges().size(), 1U);
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
  EXPECT_EQ(content_of(repository() / "refs" / "main"), commit);
}

TEST_F(Fetch, AnotherProgramsLockIsWaitedFor) {
  const fs::path lock = cache() / ".locks" / "models--a--b" / (large_blob().filename().string() + ".lock");
  fs::create_directories(lock.parent_path());
  const int held = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  std::jthread release([held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    ::close(held);
  });
  const auto result = fetch({"a/b"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("model.safetensors: another program is fetching it"));
}

TEST_F(Fetch, ManyFilesComeSideBySide) {
  for (int i = 0; i < 6; ++i) server_->add("a/many/" + std::to_string(i) + ".json", large_content(1500 + i));
  server_->behave({{"rules", {{{"path", ".json"}, {"wait", 0.3}}}}});
  const auto seconds = [&](const char* parallel) {
    fs::remove_all(cache());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fetch({"a/many", "--parallel", parallel}).status, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  EXPECT_GE(seconds("1"), 1.8);
  EXPECT_LT(seconds("6"), 1.7);
}

TEST_F(Fetch, OfflineOnlyLooksInTheCache) {
  variables_["HF_HUB_OFFLINE"] = "1";
  EXPECT_THAT(error_of({"a/b"}), AllOf(HasSubstr("HF_HUB_OFFLINE"), HasSubstr("a/b")));
  variables_.clear();
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  server_->take_requests();
  variables_["HF_HUB_OFFLINE"] = "1";
  const auto result = fetch({"a/b"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.out, snapshot().string() + "\n");
  EXPECT_EQ(server_->take_requests().size(), 0U);
  fs::remove(large_blob());
  EXPECT_THAT(error_of({"a/b"}), AllOf(HasSubstr("lacks model.safetensors"), HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(run({"inspect", "a/b"}).error, HasSubstr("`sinkscope fetch a/b@" + commit + "` completes it"));
}

TEST_F(Fetch, ABlobOfTheWrongSizeIsFetchedAgain) {
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  write_file(large_blob(), "cut");
  ASSERT_EQ(fetch({"a/b"}).status, 0);
  EXPECT_EQ(content_of(snapshot() / "model.safetensors"), large_);
}

TEST_F(Fetch, AnEmptyFileIsAFile) {
  server_->add("a/empty/config.json", "");
  ASSERT_EQ(fetch({"a/empty"}).status, 0);
  EXPECT_TRUE(fs::is_empty(cache() / "models--a--empty" / "snapshots" / commit / "config.json"));
}

TEST_F(Fetch, WrongUseIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{}, "ID"},
      {{"gpt2"}, "\"gpt2\" is no Hugging Face id"},
      {{"a/../b"}, "no Hugging Face id"},
      {{"a/b", "--parallel", "0"}, "--parallel is 0"},
      {{"a/b", "--retries", "-1"}, "--retries is -1"},
      {{"a/b", "--timeout", "0"}, "--timeout is 0"},
      {{"a/b", "--timeout", "soon"}, "'soon'"},
      {{"a/b", "--retry-wait", "-1"}, "--retry-wait is -1"},
      {{"a/b", "--retry-wait", "nan"}, "--retry-wait is nan"}};
  for (const auto& [arguments, named] : table) {
    std::vector<std::string> all{"fetch"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto result = run(all);
    EXPECT_EQ(result.status, 2) << named << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
  }
  variables_["HF_ENDPOINT"] = "nowhere";
  EXPECT_THAT(error_of({"a/b"}, 2), HasSubstr("HF_ENDPOINT is \"nowhere\""));
  EXPECT_EQ(server_->take_requests().size(), 0U);
}

}  // namespace
}  // namespace sinkscope
