// Benchmark data from their public homes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/http.h"
#include "hub/retry.h"

namespace sinkscope {

struct DatasetFile {
  std::string name;  ///< below the data folder: "gsm8k/test.jsonl"
  std::string url;
  std::string sha256;  ///< of the file as it lies there; "" where none is pinned
};

/// What `fetch --dataset` knows, in alphabetical order.
std::vector<std::string> dataset_names();

/// Throws UsageError naming those there are.
std::vector<DatasetFile> dataset_files(const std::string& name);

struct DatasetOptions {
  int timeout = 30;  ///< seconds without a connection or a byte
  RetryRule retry;
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

/// Makes the file be there: one with the right checksum is left alone, else it is fetched, checked and
/// appears whole; what is packed (.gz) is unpacked. Returns whether it was fetched. A file without a pinned
/// checksum that is there is left alone. The variables SINKSCOPE_GITHUB_ENDPOINT and HF_ENDPOINT name other
/// places for https://raw.githubusercontent.com and https://huggingface.co. Throws Error saying what is
/// wrong.
bool fetch_dataset_file(const DatasetFile& file, const std::filesystem::path& data_dir,
                        const DatasetOptions& options);

}  // namespace sinkscope
