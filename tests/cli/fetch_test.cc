// `sinkscope fetch` as a user runs it, against a hub on this machine. tests/hub/fetch_test.cc has what can go
// wrong.
#include <gmock/gmock.h>

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
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HubServer;
using testing::large_content;
using testing::ProgramResult;
using testing::run_program;
using testing::served_commit;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

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
  fs::path snapshot() const { return repository() / "snapshots" / served_commit; }
  std::string checksum_of(const std::string& content, ChecksumKind kind) const {
    write_file(folder_ / "checked", content);
    return checksum_of_file(folder_ / "checked", kind);
  }
  fs::path large_blob() const { return repository() / "blobs" / checksum_of(large_, ChecksumKind::sha256); }
  fs::path incomplete() const { return large_blob().string() + ".incomplete"; }
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

  EXPECT_EQ(content_of(repository() / "refs" / "main"), served_commit);
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
                                    "snapshots/" + served_commit + "/config.json",
                                    "snapshots/" + served_commit + "/model.safetensors"};
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

TEST_F(Fetch, JsonTellsWhatCame) {
  server_->add("a/b/README.md", "# read me\n");
  server_->add("a/b/generation_config.json", config_);  // the same content: one blob
  const auto first = fetch({"a/b", "--json", "--quiet"});
  ASSERT_EQ(first.status, 0) << first.error;
  EXPECT_EQ(first.error, "");
  const Json report = Json::parse(first.out);
  EXPECT_EQ(report["repository"], "a/b");
  EXPECT_EQ(report["revision"], "main");
  EXPECT_EQ(report["commit"], served_commit);
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

TEST_F(Fetch, TheTokenComesFromTheEnvironment) {
  server_->behave({{"token", "secret"}});
  const auto refused = fetch({"a/b"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.error, AllOf(StartsWith("sinkscope: "), HasSubstr("HF_TOKEN")));
  EXPECT_EQ(std::count(refused.error.begin(), refused.error.end(), '\n'), 1);
  write_file(folder_ / "token", "secret\n");
  EXPECT_EQ(fetch({"a/b"}).status, 0);
}

TEST_F(Fetch, AKilledFetchGoesOn) {
  server_->behave({{"rules", {{{"path", "model.safetensors"}, {"wait", 600}}}}});
  const auto killed =
      run_program({"fetch", "a/b"}, {.in_child = [this] { set_environment(); },
                                     .meanwhile =
                                         [this](pid_t child) {
                                           const auto has_ten_bytes = [this] {
                                             std::error_code none;
                                             return fs::file_size(incomplete(), none) == 10;
                                           };
                                           for (int i = 0; i < 5000 && !has_ten_bytes(); ++i)
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

TEST_F(Fetch, WrongUseIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{}, "ID"},
      {{"gpt2"}, "\"gpt2\" is no Hugging Face id"},
      {{"a/b", "--parallel", "0"}, "--parallel is 0"},
      {{"a/b", "--retries", "-1"}, "--retries is -1"},
      {{"a/b", "--timeout", "0"}, "--timeout is 0"},
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
