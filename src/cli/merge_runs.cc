#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>
#include <string>

#include <algorithm>
#include <set>

#include "cli/json_lines.h"
#include "cli/merge_shards.h"
#include "eval/result_files.h"
#include "record/run_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* deviations = "deviation.jsonl";

// The same file under another name where the file system can, else a copy.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::create_hard_link(from, to, failed);
  if (failed) fs::copy_file(from, to, failed);
  if (failed) throw Error("cannot copy {}: {}", from.string(), failed.message());
}

void check_same_run(const RunInfo& info, const RunInfo& first, const fs::path& folder) {
  if (!info.ended)
    throw Error("{} has not ended; `sinkscope {} --resume` goes on with it", folder.string(), first.command);
  const bool same = info.command == first.command && info.model.config_sha256 == first.model.config_sha256 &&
                    info.model.weights_sha256 == first.model.weights_sha256;
  if (!same) throw Error("{} was made with another model or command than the first shard", folder.string());
}

// An ended shard has a line for each of its sample files, and no torn one.
std::vector<SampleRecord> samples_of(const fs::path& folder) {
  const fs::path lines = folder / samples_name;
  SampleLines samples = read_sample_lines(lines);
  if (samples.sound_bytes != fs::file_size(lines))
    throw Error("{}: the last line is torn, and the run has ended; the whole file would be right",
                lines.string());
  std::set<std::string> listed;
  for (const SampleRecord& record : samples.records) {
    const fs::path arrays = sample_path(folder, record.index);
    if (!fs::is_regular_file(arrays))
      throw Error("{} is missing, and {} lists it", arrays.string(), lines.string());
    listed.insert(arrays.filename().string());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("sample_") && name.ends_with(".npz") && !listed.contains(name))
      throw Error("{} has no line for {}", lines.string(), name);
  }
  return std::move(samples.records);
}

// Where --deviation wrote one in each shard.
void merge_deviations(const Paths& folders, const fs::path& out) {
  std::vector<OrderedJson> lines;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / deviations)) continue;
    for (OrderedJson& line : read_objects((folder / deviations).string())) {
      if (!line.contains("index") || !line["index"].is_number_integer())
        throw Error("{}: every line must have an index", (folder / deviations).string());
      lines.push_back(std::move(line));
    }
  }
  if (lines.empty()) return;
  std::stable_sort(lines.begin(), lines.end(), [](const OrderedJson& a, const OrderedJson& b) {
    return a.at("index").get<std::int64_t>() < b.at("index").get<std::int64_t>();
  });
  write_lines(out / deviations, lines);
}

}  // namespace

std::size_t merge_runs(const Paths& given, const fs::path& out) {
  std::vector<RunInfo> infos;
  std::vector<OrderedJson> options;
  for (const fs::path& folder : given) {
    infos.push_back(read_run_info(folder));
    check_same_run(infos.back(), infos.front(), folder);
    options.push_back(infos.back().options);
  }
  const Paths folders = in_order(given, options);
  std::vector<std::pair<SampleRecord, fs::path>> samples;
  for (const fs::path& folder : folders)
    for (SampleRecord& record : samples_of(folder)) samples.emplace_back(std::move(record), folder);
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.first.index < b.first.index; });
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i].first.index != static_cast<std::int64_t>(i))
      throw Error("the shards hold no sample {}; {} should", i, folders[i % folders.size()].string());
  RunInfo info = infos.front();
  info.options = without_shard(info.options);
  RunDirectory run = RunDirectory::create(out, info);
  for (const auto& [record, folder] : samples) {
    link_or_copy(sample_path(folder, record.index), sample_path(out, record.index));
    run.add_sample(record);
  }
  merge_deviations(folders, out);
  run.end();
  return samples.size();
}

}  // namespace sinkscope
