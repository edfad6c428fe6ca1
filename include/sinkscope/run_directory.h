// A run directory: run.json says what was run, samples.jsonl lists the finished samples, sample_NNNNN.npz
// hold their arrays (sample_writer.h). docs/run-directory.md describes the files.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sinkscope {

/// run.json `model`.
struct RunModel {
  std::string name;
  std::string family;
  std::int64_t layers = 0;
  std::int64_t heads = 0;  ///< query heads
  std::int64_t kv_heads = 0;
  std::optional<std::int32_t> mask_id;  ///< none for autoregressive models
  std::string config_sha256;
  std::string weights_sha256;
};

/// run.json `sink`: the intervention, in the words of the command line.
struct RunSink {
  std::string rule = "paper";
  std::string scale = "sum";
  double epsilon = 0;
  int top_k = 0;  ///< 0 = no intervention
  std::string from = "raw";
  bool exclude_self = false;
  double mask_sink_ratio = 1;
  std::string control = "none";
  std::string action = "remove";
};

/// run.json `machine`. No host name, no user name.
struct RunMachine {
  std::string cpu;                            ///< model name
  std::vector<std::string> instruction_sets;  ///< those that matter for speed: avx2, avx512f, amx_tile, ...
  int threads = 0;
  std::int64_t memory_bytes = 0;
  std::string os;
  std::string device;  ///< where the model ran: cpu, cuda:0, ...
};

/// This machine; `threads` and `device` are the run's.
RunMachine describe_machine(int threads, std::string device);

/// This moment in UTC, as run.json has it: 2026-01-31T12:34:56Z.
std::string utc_now();

/// run.json.
struct RunInfo {
  int format = 1;
  std::string version;                                                ///< of the program that wrote it
  std::string command;                                                ///< "run"
  nlohmann::ordered_json options = nlohmann::ordered_json::object();  ///< long names with `_`, as resolved
  RunModel model;
  RunSink sink;
  RunMachine machine;
  std::string started;               ///< UTC, 2026-01-31T12:34:56Z; RunDirectory fills it in
  std::optional<std::string> ended;  ///< none while running or interrupted
};

/// One line of samples.jsonl, fields in this order.
struct SampleRecord {
  std::int64_t index = 0;
  std::string id;
  std::string prompt;  ///< before the template
  std::vector<std::int32_t> prompt_ids;
  std::string text;                      ///< generated, up to the first end token, special tokens left out
  std::vector<std::int32_t> output_ids;  ///< generated, uncut
  std::optional<std::string> reference;
  std::int64_t steps = 0;
  std::int64_t forward_passes = 0;
  std::int64_t masks_left = 0;
  std::int64_t confidence_ties = 0;
  std::int64_t empty_rows = 0;
  std::int64_t control_missing =
      0;  ///< of a control of equal budget: keys it could not find; written where not 0
  double seconds = 0;
};

/// What the name of a run's folder tells: T{MMDD}_{HHMMSS}-S{steps}-L{gen_len}-B{block_len}, absent parts
/// left out.
struct RunName {
  std::optional<std::int64_t> steps;
  std::int64_t gen_len = 0;
  std::optional<std::int64_t> block_len;
};

/// The folder's name for a local time, without suffix.
std::string run_folder_name(const RunName& name, std::time_t now);

/// Makes `out` where needed and in it a new folder of that name; `-2`, `-3`, ... are added while it is taken.
/// Safe against other processes doing the same. Hand the result to RunDirectory::create.
std::filesystem::path make_run_folder(const std::filesystem::path& out, const RunName& name, std::time_t now);

/// run.json of a finished, running or interrupted run. Only `format`, `model.layers`, `model.heads` and
/// `model.mask_id` need be there. Throws Error naming the file and the field.
RunInfo read_run_info(const std::filesystem::path& folder);

/// samples.jsonl in the order of the file; only `index` is required. A torn last line is left out; any other
/// fault and a repeated index throw Error naming the line.
std::vector<SampleRecord> read_samples(const std::filesystem::path& folder);

/// FOLDER/sample_00012.npz
std::filesystem::path sample_path(const std::filesystem::path& folder, std::int64_t index);

/// A run directory open for writing by this process alone: a second writer gets a UsageError, until this
/// object is gone or its process has ended, however it ended.
class RunDirectory {
 public:
  /// A new run in `folder`, made with its parents where missing; it must be empty, else UsageError (which
  /// mentions
  /// --resume). Writes run.json with started = now and ended = null.
  static RunDirectory create(const std::filesystem::path& folder, RunInfo info);

  /// Goes on with an interrupted run. What a crash left (a torn last line, temporary files, lines without
  /// arrays) is cleaned up, and `ended` becomes null again.
  static RunDirectory resume(const std::filesystem::path& folder);

  ~RunDirectory();
  RunDirectory(RunDirectory&&) noexcept;
  RunDirectory& operator=(RunDirectory&&) noexcept;

  const std::filesystem::path& folder() const;
  const RunInfo& info() const;

  /// Indices of the samples that are done: line written and arrays there.
  const std::set<std::int64_t>& finished() const;

  /// Appends the sample's line and flushes it to disk: from here on the sample is done. Its npz must be in
  /// place already; a missing one or an index that is done throws Error.
  void add_sample(const SampleRecord& record);

  /// Puts the lines of samples.jsonl in the order of their indices and sets `ended` in run.json. The object
  /// stays open.
  void end();

 private:
  struct State;
  explicit RunDirectory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sinkscope
