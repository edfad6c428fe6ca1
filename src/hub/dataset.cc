#include "hub/dataset.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <thread>

#include "base/files.h"
#include "hub/checksum.h"
#include "hub/gunzip.h"
#include "hub/settings.h"

namespace sinkscope {
namespace {

constexpr std::size_t largest_file = std::size_t{256} << 20;
constexpr std::string_view packed = ".gz";

struct Entry {
  const char* dataset;
  const char* name;
  const char* home;  // "github" or "hub"
  const char* path;
  const char* sha256;
};

// Pinned are the files as their authors published them; HellaSwag's has no checksum of ours.
constexpr std::array entries{
    Entry{"countdown", "planning/cd3_test.jsonl", "github", "/DreamLM/Dream/main/eval/data/cd3_test.jsonl",
          "14f727ff203f34f7ddcc05108c95f06414ff1baaa6f8e268c6c72699ec08e389"},
    Entry{"gsm8k", "gsm8k/test.jsonl", "github",
          "/openai/grade-school-math/master/grade_school_math/data/test.jsonl",
          "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"},
    Entry{"gsm8k", "gsm8k/train.jsonl", "github",
          "/openai/grade-school-math/master/grade_school_math/data/train.jsonl",
          "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"},
    Entry{"hellaswag", "hellaswag/hellaswag_val.jsonl", "github",
          "/rowanz/hellaswag/master/data/hellaswag_val.jsonl", ""},
    Entry{"humaneval", "humaneval/HumanEval.jsonl.gz", "github",
          "/openai/human-eval/master/data/HumanEval.jsonl.gz",
          "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef"},
    Entry{"math500", "math500/test.jsonl", "hub", "/datasets/HuggingFaceH4/MATH-500/resolve/main/test.jsonl",
          "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132"},
    Entry{"mbpp", "mbpp/mbpp.jsonl", "github", "/google-research/google-research/master/mbpp/mbpp.jsonl",
          "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f"},
    Entry{"sudoku", "planning/sudoku_4x4_10.jsonl", "github",
          "/DreamLM/Dream/main/eval/data/sudoku_4x4_10.jsonl",
          "3f5ceb59a1b2ebca3fa1ca4e4b6c2cfee2818c274e1c66a030148799413151cc"},
};

std::string endpoint_of(std::string_view home) {
  if (home == "hub") return hub_settings().endpoint;
  const char* const given = std::getenv("SINKSCOPE_GITHUB_ENDPOINT");
  return given == nullptr || *given == '\0' ? "https://raw.githubusercontent.com" : given;
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string why(const HttpAnswer& answer) {
  return answer.failure == HttpFailure::none ? fmt::format("the answer is {}", answer.head.status)
                                             : answer.reason;
}

std::string download(const std::string& url, const DatasetOptions& options) {
  const HubSettings hub = hub_settings();
  const std::atomic<bool> stop = false;
  HttpSession session({.timeout = options.timeout, .token = hub.token, .endpoint = hub.endpoint}, stop);
  std::string content;
  const HttpBody body{.begin = [&](const HttpHead&) { content.clear(); },
                      .write =
                          [&](std::span<const std::byte> bytes) {
                            if (bytes.size() > largest_file - content.size())
                              throw Error("{} is larger than {} bytes", url, largest_file);
                            content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                          }};
  for (int failures = 1;; ++failures) {
    const HttpAnswer answer = session.get(url, 0, body);
    if (answer.failure == HttpFailure::none && answer.head.status == 200) return content;
    const bool again = answer.failure == HttpFailure::none ? is_temporary(answer.head.status)
                                                           : answer.failure != HttpFailure::insecure;
    if (!again || failures > options.retry.retries)
      throw Error("cannot fetch {}: {}; check the network and the proxy, or put the file there yourself", url,
                  why(answer));
    const double seconds = wait_before_retry(options.retry, failures, answer.retry_after, 1.0);
    options.note(fmt::format("{}: {}; the next try is in {:.0f} s", url, why(answer), seconds));
    wait(seconds);
  }
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries)
    if (names.empty() || names.back() != entry.dataset) names.emplace_back(entry.dataset);
  return names;
}

std::vector<DatasetFile> dataset_files(const std::string& name) {
  std::vector<DatasetFile> files;
  for (const Entry& entry : entries)
    if (name == entry.dataset)
      files.push_back({entry.name, endpoint_of(entry.home) + entry.path, entry.sha256});
  if (files.empty())
    throw UsageError("there is no data set \"{}\"; {} would be right", name,
                     fmt::join(dataset_names(), ", "));
  return files;
}

bool fetch_dataset_file(const DatasetFile& file, const std::filesystem::path& data_dir,
                        const DatasetOptions& options) {
  const std::filesystem::path path = data_dir / file.name;
  const bool is_packed = file.name.ends_with(packed);
  const std::filesystem::path unpacked =
      is_packed ? data_dir / file.name.substr(0, file.name.size() - packed.size()) : path;
  const auto is_right = [&](const std::filesystem::path& there) {
    return file.sha256.empty() || checksum_of_file(there, ChecksumKind::sha256) == file.sha256;
  };
  if (std::filesystem::exists(path) && std::filesystem::exists(unpacked) && is_right(path)) return false;
  if (hub_settings().offline)
    throw Error("{} is not in {}, and HF_HUB_OFFLINE forbids to fetch it", file.name, data_dir.string());
  const std::string content = download(file.url, options);
  make_folders(path.parent_path());
  const std::filesystem::path checked = path.string() + ".part";
  write_file_atomically(checked, content);
  if (!is_right(checked)) {
    const std::string found = checksum_of_file(checked, ChecksumKind::sha256);
    std::filesystem::remove(checked);
    throw Error(
        "{} has the SHA-256 {}; {} would be right: its home has changed, or something stands in between",
        file.url, found, file.sha256);
  }
  std::filesystem::rename(checked, path);
  if (is_packed) write_file_atomically(unpacked, gunzip(content, path.string(), largest_file));
  return true;
}

}  // namespace sinkscope
