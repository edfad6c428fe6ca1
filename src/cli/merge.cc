// `sinkscope merge`: the shards of a run or of an evaluation as one.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <memory>

#include "base/new_folder.h"
#include "cli/commands.h"
#include "cli/merge_shards.h"
#include "cli/model_options.h"
#include "cli/option_table.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::vector<std::string> runs;
  std::string run_dir;
  bool quiet = false;
};

void check_place(const fs::path& out, const Paths& folders) {
  if (out.empty()) throw UsageError("--run-dir is empty; it names the folder for the whole");
  std::error_code error;
  const bool is_folder = fs::is_directory(fs::symlink_status(out, error));
  const bool is_free = !fs::exists(fs::symlink_status(out, error));
  if (!is_free && !(is_folder && fs::is_empty(out)))
    throw UsageError("{} is there already; --run-dir must name a folder that is not, or is empty",
                     out.string());
  const fs::path place = fs::weakly_canonical(out, error);
  for (const fs::path& folder : folders) {
    if (folder.empty()) throw UsageError("a RUN is empty; it names the folder of a shard");
    const fs::path shard = fs::weakly_canonical(folder, error);
    if (!shard.empty() &&
        std::mismatch(shard.begin(), shard.end(), place.begin(), place.end()).first == shard.end())
      throw UsageError("--run-dir {} lies in the shard {}; a folder beside it would be right", out.string(),
                       folder.string());
  }
}

void merge_command(const MergeOptions& options) {
  const fs::path out = options.run_dir;
  const Paths folders(options.runs.begin(), options.runs.end());
  check_place(out, folders);
  std::error_code error;
  const bool is_evaluation = fs::exists(folders.front() / "eval.json", error);
  const bool was_there = fs::remove(out, error);  // an empty folder, whose place the whole takes
  std::size_t count = 0;
  try {
    NewFolder whole(out);
    count = is_evaluation ? merge_evaluations(folders, whole.path()) : merge_runs(folders, whole.path());
    whole.finish();
  } catch (...) {
    if (was_there) fs::create_directory(out, error);
    throw;
  }
  note(options.quiet, fmt::format("{} {} of {} shards are in {}", count, is_evaluation ? "cells" : "samples",
                                  folders.size(), out.string()));
}

}  // namespace

void add_merge_command(CLI::App& program) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = program.add_subcommand("merge", "Join the shards of a run or of an evaluation");
  OptionTable table(*command);
  command->add_option("RUN", options->runs, "folders that --shard made, all of one run or evaluation")
      ->required();
  table.option("run-dir", options->run_dir, "where the whole shall lie")->required();
  table.flag("quiet", options->quiet, "no notes on stderr");
  command->footer("The whole is what one process would have left, but for times. The shards stay.");
  command->callback([options] { merge_command(*options); });
}

}  // namespace sinkscope
