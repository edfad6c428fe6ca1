// Fetches within this process, from a hub on this machine that behaves well and badly.
// tests/cli/fetch_test.cc runs the program.
#include "hub/fetch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <thread>

#include "hub/checksum.h"
#include "hub_server.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HubServer;
using testing::large_content;
using ::testing::Not;
using testing::served_commit;
using testing::TemporaryFolder;
using testing::write_file;

using Strings = std::vector<std::string>;

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
    settings_.endpoint = server_->endpoint();
    settings_.cache = cache();
    options_.retry.first_wait = 0.02;
  }

  FetchReport fetch(const std::string& id, const FetchOptions& given) {
    FetchOptions options = given;
    options.id = parse_hub_id(id).value();
    notes_.clear();
    return fetch_repository(options, settings_,
                            {.planned = [](const FetchPlan&) {},
                             .progress = [this](const FetchProgress&) { meanwhile_(); },
                             .note = [this](const std::string& line) { notes_ += line + "\n"; }});
  }
  FetchReport fetch(const std::string& id = "a/b") { return fetch(id, options_); }
  std::string error_of(const std::string& id = "a/b") {
    try {
      fetch(id);
    } catch (const Error& error) {
      return error.what();
    }
    return "(no Error)";
  }
  void add_rule(const Json& rule) { server_->behave({{"rules", {rule}}}); }

  fs::path cache() const { return folder_ / "hub"; }
  fs::path repository() const { return cache() / "models--a--b"; }
  fs::path snapshot() const { return repository() / "snapshots" / served_commit; }
  fs::path model() const { return snapshot() / "model.safetensors"; }
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
  Strings ranges() const {
    Strings result;
    for (const auto& request : server_->take_requests())
      if (request.port == "cdn") result.push_back(request.range);
    return result;
  }

  static HubServer* server_;
  const TemporaryFolder folder_;
  const std::string config_ = "{\"a\": 1}\n";
  const std::string large_ = large_content(300'000);
  FetchOptions options_;
  HubSettings settings_;
  std::string notes_;
  std::function<void()> meanwhile_ = [] {};
};
HubServer* Fetch::server_ = nullptr;

TEST_F(Fetch, RevisionsAreBranchesTagsOrCommits) {
  fetch("a/b@v1");
  fetch("a/b@refs/pr/1");
  EXPECT_EQ(content_of(repository() / "refs" / "v1"), served_commit);
  EXPECT_EQ(content_of(repository() / "refs" / "refs" / "pr" / "1"), served_commit);
  EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
  EXPECT_EQ(server_->take_requests().back().path, "/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true");
  fs::remove_all(repository());
  fetch("a/b@" + served_commit);
  EXPECT_FALSE(fs::exists(repository() / "refs"));
  EXPECT_TRUE(fs::exists(model()));
}

TEST_F(Fetch, PatternsChooseFiles) {
  server_->add("a/b/onnx/weights.onnx", "weights");
  options_.include = {"onnx/*", "*.json"};
  options_.exclude = {"config*"};
  EXPECT_EQ(fetch().left_out.size(), 2U);
  EXPECT_EQ(fs::read_symlink(snapshot() / "onnx" / "weights.onnx"),
            "../../../blobs/" + checksum_of("weights", ChecksumKind::git_sha1));
  EXPECT_FALSE(fs::exists(snapshot() / "config.json"));
  options_.include = {"*.gguf"};
  EXPECT_THAT(error_of(), AllOf(HasSubstr("\"*.gguf\""), HasSubstr("config.json")));
}

TEST_F(Fetch, FilesWithOneContentShareABlob) {
  server_->add("a/b/generation_config.json", config_);
  EXPECT_EQ(fetch().received, large_.size() + config_.size());
  EXPECT_EQ(fs::read_symlink(snapshot() / "generation_config.json"),
            fs::read_symlink(snapshot() / "config.json"));
}

TEST_F(Fetch, ACutConnectionIsContinued) {
  add_rule({{"path", "model.safetensors"}, {"times", 1}, {"cut", 1000}});
  EXPECT_EQ(fetch().received, large_.size() + config_.size());
  EXPECT_THAT(notes_, HasSubstr("trying again in"));
  EXPECT_EQ(content_of(model()), large_);
  EXPECT_THAT(ranges(), ElementsAre("", "bytes=1000-"));
}

TEST_F(Fetch, AServerThatAlwaysCutsIsGivenUpAndThePartKept) {
  add_rule({{"path", "model.safetensors"}, {"cut", 1000}});
  options_.retry.retries = 2;
  EXPECT_THAT(error_of(), AllOf(HasSubstr("model.safetensors of a/b broke off"), HasSubstr("tried 3 times"),
                                HasSubstr("kept")));
  EXPECT_EQ(content_of(incomplete()), large_.substr(0, 3000));
  EXPECT_FALSE(fs::exists(repository() / "refs"));
  EXPECT_FALSE(fs::exists(snapshot()));
  server_->behave(Json::object());
  server_->take_requests();
  fetch();
  EXPECT_THAT(ranges(), ElementsAre("bytes=3000-"));
  EXPECT_EQ(content_of(model()), large_);
  EXPECT_FALSE(fs::exists(incomplete()));
}

TEST_F(Fetch, AServerThatIgnoresTheRangeSendsTheWhole) {
  leave_incomplete(large_.substr(0, 5000));
  add_rule({{"path", "model.safetensors"}, {"ignore_range", true}});
  fetch();
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-"));
  EXPECT_EQ(content_of(model()), large_);
}

TEST_F(Fetch, AnInterruptedFileThatIsWholeIsOnlyChecked) {
  leave_incomplete(large_);
  fetch();
  EXPECT_THAT(ranges(), ElementsAre());
  EXPECT_EQ(content_of(large_blob()), large_);
}

TEST_F(Fetch, ARangeThatCannotBeSatisfiedBeginsAnew) {
  leave_incomplete(large_.substr(0, 5000));
  add_rule({{"path", "model.safetensors"}, {"times", 1}, {"status", 416}});
  options_.retry.retries = 0;
  fetch();
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-", ""));
  EXPECT_EQ(content_of(model()), large_);
}

TEST_F(Fetch, PiecesThatDoNotFitAreFetchedAnewOnce) {
  leave_incomplete(std::string(5000, 'x'));
  fetch();
  EXPECT_THAT(notes_, HasSubstr("do not fit together"));
  EXPECT_THAT(ranges(), ElementsAre("bytes=5000-", ""));
  EXPECT_EQ(content_of(model()), large_);
  for (const std::size_t size : {large_.size(), large_.size() + 1}) {
    fs::remove_all(repository());
    leave_incomplete(std::string(size, 'x'));
    fetch();
    EXPECT_EQ(content_of(model()), large_);
  }
}

TEST_F(Fetch, AWrongChecksumIsNamedAndNothingKept) {
  std::string other = large_;
  other[1234] ^= 1;
  add_rule({{"path", "model.safetensors"}, {"body", other}});
  EXPECT_THAT(error_of(),
              AllOf(HasSubstr("model.safetensors of a/b: the checksum is"), HasSubstr("removed")));
  EXPECT_FALSE(fs::exists(incomplete()));
  EXPECT_FALSE(fs::exists(large_blob()));
  fs::remove_all(repository());
  add_rule({{"path", "config.json"}, {"body", "{\"a\": 2}\n"}});
  EXPECT_THAT(error_of(), HasSubstr("config.json of a/b: the checksum is"));
}

TEST_F(Fetch, AWrongSizeIsNamed) {
  add_rule({{"path", "model.safetensors"}, {"body", "short"}});
  EXPECT_THAT(error_of(), HasSubstr("the server offers 5 bytes, the hub's list says 300000"));
  add_rule({{"path", "model.safetensors"}, {"body", large_ + "x"}, {"no_length", true}});
  EXPECT_THAT(error_of(), HasSubstr("sends more than the 300000 bytes"));
  fs::remove(incomplete());
  options_.retry.retries = 0;
  add_rule({{"path", "model.safetensors"}, {"body", "short"}, {"no_length", true}});
  EXPECT_THAT(error_of(), HasSubstr("5 of 300000 bytes came"));
  leave_incomplete(large_.substr(0, 5000));
  add_rule({{"path", "model.safetensors"}, {"content_range", "bytes 0-294999/300000"}});
  EXPECT_THAT(error_of(), HasSubstr("asked for the bytes from 5000 on"));
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
  fetch();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_THAT(notes_, AllOf(HasSubstr("trouble (502)"), HasSubstr("trouble (503)"), HasSubstr("(429)"),
                            HasSubstr("trying again in 1.0 s")));
}

TEST_F(Fetch, ADateMayBeAskedFor) {
  char date[64];
  const std::time_t then = std::time(nullptr) + 3;
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&then));
  add_rule({{"path", "/api/"}, {"times", 1}, {"status", 429}, {"headers", {{"Retry-After", date}}}});
  fetch();
  EXPECT_THAT(notes_, ::testing::ContainsRegex("trying again in [123].0 s"));
}

TEST_F(Fetch, TroubleThatStaysIsSaid) {
  add_rule({{"path", "/api/"}, {"status", 500}});
  options_.retry.retries = 1;
  EXPECT_THAT(error_of(), AllOf(HasSubstr("trouble (500) with a/b"), HasSubstr("tried 2 times")));
  EXPECT_EQ(server_->take_requests().size(), 2U);
  add_rule({{"path", "/api/"}, {"status", 429}});
  options_.retry.retries = 0;
  EXPECT_THAT(error_of(), HasSubstr("too many requests (429)"));
}

TEST_F(Fetch, WhatTheHubRefusesIsSaidWithoutASecondTry) {
  const auto with_rule = [&](const std::string& path, int status, const Json& headers) {
    add_rule({{"path", path}, {"status", status}, {"headers", headers}});
    fs::remove_all(cache());
    server_->take_requests();
    return error_of();
  };
  EXPECT_THAT(with_rule("model.safetensors", 403, {{"X-Error-Code", "GatedRepo"}}),
              AllOf(HasSubstr("model.safetensors of a/b is gated"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(with_rule("config.json", 403, Json::object()),
              AllOf(HasSubstr("(403)"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(with_rule("config.json", 404, Json::object()), HasSubstr("there is no config.json of a/b"));
  EXPECT_THAT(with_rule("/api/", 403, {{"X-Error-Message", "go away"}}), HasSubstr("it says \"go away\""));
  EXPECT_EQ(server_->take_requests().size(), 1U);
  server_->behave(Json::object());
  EXPECT_THAT(error_of("a/none"), HasSubstr("no repository a/none"));
  EXPECT_THAT(error_of("a/b@v9"), HasSubstr("a/b has no revision v9"));
  EXPECT_FALSE(fs::exists(cache() / "models--a--none"));
}

TEST_F(Fetch, TheTokenGoesToTheHubOnly) {
  server_->behave({{"token", "secret"}});
  EXPECT_THAT(error_of(), AllOf(HasSubstr("401"), HasSubstr("HF_TOKEN"), HasSubstr("a/b")));
  settings_.token = "wrong";
  EXPECT_THAT(error_of(), AllOf(HasSubstr("401"), HasSubstr("refuses the token"), HasSubstr("HF_TOKEN")));
  server_->take_requests();
  settings_.token = "secret";
  fetch();
  int at_cdn = 0;
  for (const auto& request : server_->take_requests()) {
    at_cdn += request.port == "cdn" ? 1 : 0;
    EXPECT_EQ(request.authorization, request.port == "hub" ? "Bearer secret" : "") << request.path;
  }
  EXPECT_EQ(at_cdn, 1);
}

TEST_F(Fetch, RedirectsEnd) {
  add_rule(
      {{"path", "/api/"}, {"status", 302}, {"headers", {{"Location", "/api/models/a/b/revision/main"}}}});
  EXPECT_THAT(error_of(), HasSubstr("redirects more than 10 times"));
  for (const char* nowhere : {"file:///etc/passwd", "ftp://h/x"}) {
    add_rule({{"path", "/api/"}, {"status", 302}, {"headers", {{"Location", nowhere}}}});
    EXPECT_THAT(error_of(), HasSubstr("redirects to no http address")) << nowhere;
  }
}

TEST_F(Fetch, HostileAnswersAreRefused) {
  for (const char* name : {"../../evil", "/tmp/evil", "a/../../evil", "e\x1b[31m"}) {
    add_rule({{"path", "config.json"}, {"list_name", name}});
    EXPECT_THAT(error_of(), HasSubstr("plain relative path")) << name;
  }
  add_rule({{"path", "config.json"}, {"list_sha", "../../evil"}});
  EXPECT_THAT(error_of(), HasSubstr("40 hexadecimal digits"));
  server_->behave({{"answer", "<html>hello"}});
  EXPECT_THAT(error_of(), HasSubstr("is not valid JSON"));
  server_->behave({{"answer", "{}"}});
  EXPECT_THAT(error_of(), HasSubstr("has no sha"));
  server_->behave({{"answer_size", largest_answer + 1}});
  EXPECT_THAT(error_of(), HasSubstr("is longer than"));
  server_->behave({{"any_revision", true}});
  EXPECT_THAT(error_of("a/b@" + std::string(40, 'd')), HasSubstr("is about the commit c0c0"));
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(Fetch, TooLittleRoomIsSaidBeforehand) {
  add_rule({{"path", "model.safetensors"}, {"list_size", 10'000'000'000'000}});
  if (fs::space(folder_.path()).available > 10'000'000'000'000U)
    GTEST_SKIP() << "this disk has room for anything";
  EXPECT_THAT(error_of(), AllOf(HasSubstr("a/b needs 10000.000 GB"), HasSubstr("HF_HUB_CACHE")));
  EXPECT_EQ(server_->take_requests().size(), 1U);
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(Fetch, ADeadServerIsGivenUp) {
  options_.retry.retries = 0;
  options_.timeout = 1;
  add_rule({{"path", "model.safetensors"}, {"wait", 600}});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of(), HasSubstr("model.safetensors of a/b broke off"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(300));
}

TEST_F(Fetch, NoNetworkAndBadTlsAreSaidAtOnce) {
  settings_.endpoint = "http://127.0.0.1:1";
  EXPECT_THAT(error_of(), AllOf(HasSubstr("cannot reach http://127.0.0.1:1"), Not(HasSubstr("tried"))));
  settings_.endpoint = "https" + server_->endpoint().substr(4);
  EXPECT_THAT(error_of(), HasSubstr("no trustworthy TLS connection"));
}

TEST_F(Fetch, AnotherProgramsLockIsWaitedFor) {
  const fs::path lock = cache() / ".locks" / "models--a--b" / (large_blob().filename().string() + ".lock");
  fs::create_directories(lock.parent_path());
  int held = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  meanwhile_ = [&] {
    if (held < 0 || notes_.find("model.safetensors: another program is fetching it") == std::string::npos)
      return;
    EXPECT_EQ(ranges().size(), 0U);
    ::close(held);
    held = -1;
  };
  fetch();
  EXPECT_EQ(held, -1);
  EXPECT_EQ(content_of(model()), large_);
}

TEST_F(Fetch, TwoFetchesOfTheSameShareTheWork) {
  add_rule({{"path", "model.safetensors"}, {"wait", 0.5}});
  FetchOptions options = options_;
  options.id = parse_hub_id("a/b").value();
  const auto nothing = [](const auto&) {};
  std::vector<FetchReport> reports(3);
  {
    std::vector<std::jthread> threads;
    for (FetchReport& report : reports)
      threads.emplace_back([&] {
        report =
            fetch_repository(options, settings_, {.planned = nothing, .progress = nothing, .note = nothing});
      });
  }
  std::uint64_t received = 0;
  for (const FetchReport& report : reports) received += report.received;
  EXPECT_EQ(received, large_.size() + config_.size());
  EXPECT_EQ(ranges().size(), 1U);
  EXPECT_EQ(content_of(model()), large_);
  EXPECT_EQ(content_of(repository() / "refs" / "main"), served_commit);
}

TEST_F(Fetch, ManyFilesComeSideBySide) {
  for (int i = 0; i < 6; ++i) server_->add("a/many/" + std::to_string(i) + ".json", large_content(1500 + i));
  add_rule({{"path", ".json"}, {"wait", 0.2}});
  const auto most_at_once = [&](int parallel) {
    fs::remove_all(cache());
    options_.parallel = parallel;
    EXPECT_EQ(fetch("a/many").files.size(), 6U);
    return server_->take_most_waiting();
  };
  EXPECT_EQ(most_at_once(1), 1);
  EXPECT_GT(most_at_once(3), 1);
  EXPECT_LE(most_at_once(3), 3);
}

TEST_F(Fetch, OfflineOnlyLooksInTheCache) {
  settings_.offline = true;
  EXPECT_THAT(error_of(), AllOf(HasSubstr("HF_HUB_OFFLINE"), HasSubstr("holds no a/b")));
  settings_.offline = false;
  fetch();
  server_->take_requests();
  settings_.offline = true;
  const FetchReport report = fetch();
  EXPECT_EQ(report.snapshot, snapshot());
  EXPECT_EQ(report.commit, served_commit);
  EXPECT_EQ(report.files.size(), 2U);
  EXPECT_EQ(report.files[1].file.checksum, large_blob().filename());
  options_.include = {"config.json"};
  EXPECT_EQ(fetch().files.size(), 1U);
  options_.include = {"tokenizer.json"};
  EXPECT_THAT(error_of(), HasSubstr("--include \"tokenizer.json\" matches no file"));
  options_.include = {};
  fs::remove(large_blob());
  EXPECT_THAT(error_of(), AllOf(HasSubstr("lacks model.safetensors;"), HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_EQ(server_->take_requests().size(), 0U);
}

TEST_F(Fetch, OfflineMissesTheShardsThatTheIndexNames) {
  fs::remove_all(cache());
  server_->add("a/sharded/config.json", config_);
  server_->add("a/sharded/model.safetensors.index.json",
               R"({"weight_map": {"x": "model-1.safetensors", "y": "model-2.safetensors"}})");
  server_->add("a/sharded/model-1.safetensors", "one");
  server_->add("a/sharded/model-2.safetensors", "two");
  options_.exclude = {"model-2*"};
  fetch("a/sharded");
  options_.exclude = {};
  settings_.offline = true;
  EXPECT_THAT(error_of("a/sharded"), HasSubstr("lacks model-2.safetensors"));
  settings_.offline = false;
  EXPECT_EQ(fetch("a/sharded").received, 3U);
  settings_.offline = true;
  EXPECT_EQ(fetch("a/sharded").files.size(), 4U);
}

TEST_F(Fetch, ABlobOfTheWrongSizeIsFetchedAgain) {
  fetch();
  write_file(large_blob(), "cut");
  fetch();
  EXPECT_EQ(content_of(model()), large_);
}

TEST_F(Fetch, ANewCommitOfABranchTakesWhatIsTheSame) {
  fetch();
  server_->add("a/b/config.json", "{\"a\": 2}\n");
  server_->behave({{"commit", std::string(40, 'd')}});
  EXPECT_EQ(fetch().received, 9U);
  EXPECT_EQ(content_of(repository() / "refs" / "main"), std::string(40, 'd'));
  EXPECT_EQ(content_of(snapshot() / "config.json"), config_);
  EXPECT_EQ(content_of(repository() / "snapshots" / std::string(40, 'd') / "config.json"), "{\"a\": 2}\n");
}

TEST_F(Fetch, AnEmptyFileIsAFile) {
  server_->add("a/empty/config.json", "");
  const FetchReport report = fetch("a/empty");
  EXPECT_TRUE(fs::is_empty(report.snapshot / "config.json"));
}

TEST_F(Fetch, NothingIsWrittenWhereNothingIsMissing) {
  fetch();
  const auto everything = [&] {
    std::map<std::string, fs::file_time_type> times;
    for (const auto& entry : fs::recursive_directory_iterator(cache()))
      if (!entry.is_symlink()) times[entry.path().string()] = entry.last_write_time();
    return times;
  };
  fs::remove_all(cache() / ".locks");
  const auto before = everything();
  fetch();
  EXPECT_EQ(everything(), before);
}

TEST_F(Fetch, AFolderThatCannotBeWrittenIsNamed) {
  write_file(cache(), "a file where the cache should be");
  EXPECT_THAT(error_of(), AllOf(HasSubstr("cannot make the folder"), HasSubstr(cache().string())));
}

}  // namespace
}  // namespace sinkscope
