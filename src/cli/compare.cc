// `sinkscope compare`: where two recorded runs part.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/compare_tables.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
#include "measure/compare_runs.h"
#include "measure/statistics.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct CompareCommand {
  std::string a, b;
  std::int64_t resamples = 10000;
  std::int64_t seed = 0;
  std::string out;
  bool json = false;
  bool quiet = false;
};

CompareOptions options_of(const CompareCommand& command) {
  validate_resamples(command.resamples);
  if (command.seed < 0) throw UsageError("--seed is {}; it must be at least 0", command.seed);
  check_result_folder(command.out, "compare.json and samples.csv");
  return {static_cast<std::size_t>(command.resamples), static_cast<std::uint64_t>(command.seed)};
}

void compare_command(const CompareCommand& command) {
  const CompareOptions options = options_of(command);
  Progress bar("comparing", command.quiet);
  CompareCallbacks callbacks;
  callbacks.note = [&](const std::string& line) {
    bar.finish();
    note(command.quiet, line);
  };
  callbacks.progress = [&](std::size_t done, std::size_t all) { show_samples(bar, done, all); };
  const OrderedJson compared = compare_runs(command.a, command.b, options, callbacks);
  bar.finish();
  if (!command.out.empty())
    write_results(command.out, "compare.json", compared, {compared_samples(compared)});
  fmt::print("{}", command.json ? json_line(compared) + "\n" : compare_tables(compared));
}

}  // namespace

void add_compare_command(CLI::App& program) {
  auto options = std::make_shared<CompareCommand>();
  CLI::App* command = program.add_subcommand("compare", "Where two recorded runs of the same prompts part");
  OptionTable table(*command);
  command->add_option("RUN_A", options->a, "run directory, the one without the change")->required();
  command->add_option("RUN_B", options->b, "run directory; differences are b - a")->required();
  table.option("resamples", options->resamples, "draws of a bootstrap interval");
  table.option("seed", options->seed, "of these draws");
  table.option("out", options->out, "folder for compare.json and samples.csv");
  table.flag("json", options->json, "print compare.json instead of tables");
  table.flag("quiet", options->quiet, "no progress and no notes on stderr");
  command->footer("docs/compare.md describes every number and the files.");
  command->callback([options] { compare_command(*options); });
}

}  // namespace sinkscope
