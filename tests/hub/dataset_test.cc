// Benchmark data from a server on this machine that stands for their homes.
#include "hub/dataset.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <cstdio>

#include "hub/checksum.h"
#include "hub/gunzip.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::content_of;
using testing::Environment;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::write_file;

// Python's own server of a folder.
class FileServer {
 public:
  explicit FileServer(const std::filesystem::path& folder) {
    const std::string program =
        "import http.server, functools, sys\n"
        "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), handler)\n"
        "print(server.server_port, flush=True)\n"
        "sys.stderr = open('/dev/null', 'w')\n"
        "server.serve_forever()\n";
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      ::execl("/usr/bin/python3", "python3", "-c", program.c_str(), folder.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(pipe[1]);
    std::FILE* const port = ::fdopen(pipe[0], "r");
    int number = 0;
    if (std::fscanf(port, "%d", &number) != 1) std::abort();
    std::fclose(port);
    endpoint_ = "http://127.0.0.1:" + std::to_string(number);
  }
  ~FileServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  const std::string& endpoint() const { return endpoint_; }

 private:
  pid_t child_ = -1;
  std::string endpoint_;
};

std::string packed(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.gz";
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return content_of(path);
}

class Dataset : public ::testing::Test {
 protected:
  DatasetFile file_with(const std::string& name, const std::string& content) {
    write_file(home_ / name, content);
    write_file(folder_ / "checked", content);
    return {"set/" + name, server_.endpoint() + "/" + name,
            checksum_of_file(folder_ / "checked", ChecksumKind::sha256)};
  }

  TemporaryFolder home_, folder_;
  FileServer server_{home_.path()};
  DatasetOptions options_{.timeout = 5, .retry = {0, 0.01}};
};

TEST_F(Dataset, IsFetchedOnce) {
  const DatasetFile file = file_with("a.jsonl", "{}\n");
  EXPECT_TRUE(fetch_dataset_file(file, folder_.path(), options_));
  EXPECT_EQ(content_of(folder_ / "set/a.jsonl"), "{}\n");
  EXPECT_FALSE(fetch_dataset_file(file, folder_.path(), options_));
  write_file(folder_ / "set/a.jsonl", "changed");
  EXPECT_TRUE(fetch_dataset_file(file, folder_.path(), options_));
}

TEST_F(Dataset, ThatHasChangedIsRefused) {
  DatasetFile file = file_with("a.jsonl", "{}\n");
  write_file(home_ / "a.jsonl", "something else");
  try {
    fetch_dataset_file(file, folder_.path(), options_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("would be right: its home has changed"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "set"));
}

TEST_F(Dataset, ThatIsPackedIsUnpacked) {
  const DatasetFile file = file_with("a.jsonl.gz", packed("{\"x\":1}\n"));
  EXPECT_TRUE(fetch_dataset_file(file, folder_.path(), options_));
  EXPECT_EQ(content_of(folder_ / "set/a.jsonl"), "{\"x\":1}\n");
  EXPECT_FALSE(fetch_dataset_file(file, folder_.path(), options_));
}

TEST_F(Dataset, ThatIsNotThereIsNamed) {
  try {
    fetch_dataset_file({"set/b.jsonl", server_.endpoint() + "/b.jsonl", ""}, folder_.path(), options_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/b.jsonl: the answer is 404"));
  }
}

TEST(DatasetNames, HaveHomesThatVariablesMove) {
  const Environment github("SINKSCOPE_GITHUB_ENDPOINT", "http://mirror"), hub("HF_ENDPOINT", "http://hub");
  for (const std::string& name : dataset_names())
    for (const DatasetFile& file : dataset_files(name))
      EXPECT_TRUE(file.url.starts_with("http://mirror/") || file.url.starts_with("http://hub/")) << file.url;
  EXPECT_THROW(dataset_files("nonsense"), UsageError);
}

// Pinned are the very files that the benchmarks' own tests use.
TEST(DatasetNames, HaveTheChecksumsOfThePublishedFiles) {
  const auto data = std::filesystem::path(SINKSCOPE_SHARED_DIR) / "data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "the data sets are not here";
  for (const std::string& name : dataset_names())
    for (const DatasetFile& file : dataset_files(name)) {
      if (file.sha256.empty()) continue;
      EXPECT_EQ(checksum_of_file(data / file.name, ChecksumKind::sha256), file.sha256) << file.name;
    }
}

TEST(Gunzip, ReadsWhatIsWholeOnly) {
  const std::string text(300000, 'a');
  const std::string whole = packed(text);
  EXPECT_EQ(gunzip(whole, "x", 1 << 20), text);
  EXPECT_EQ(gunzip(whole + packed("b"), "x", 1 << 20), text + "b");
  EXPECT_THROW(gunzip(whole, "x", 1000), Error);
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, whole.size() / 2, whole.size() - 1})
    EXPECT_THROW(gunzip(whole.substr(0, size), "x", 1 << 20), Error) << size;
  EXPECT_THROW(gunzip("no gzip at all", "x", 1 << 20), Error);
}

}  // namespace
}  // namespace sinkscope
