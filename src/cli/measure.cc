// `sinkscope measure`: the sinks of recorded runs in numbers.
#include <fmt/format.h>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/measure_tables.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
#include "cli/rule_options.h"
#include "cli/token_texts.h"
#include "measure/csv_tables.h"
#include "measure/measure_runs.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct MeasureCommand {
  std::vector<std::string> runs;
  RuleOptions rule;
  double calibrate = 0.04;
  std::string tokenizer;
  std::string out;
  bool json = false;
  bool quiet = false;
};

MeasureOptions options_of(const MeasureCommand& command) {
  const MeasureOptions options{detection_of(command.rule), command.calibrate};
  validate_measure(options);
  return options;
}

void measure_command(const MeasureCommand& command) {
  const MeasureOptions options = options_of(command);
  check_result_folder(command.out, "measure.json and the tables");
  TokenTexts texts(command.tokenizer, command.quiet);
  Progress bar("measuring", command.quiet);
  MeasureCallbacks callbacks;
  callbacks.token_text = [&](const RunInfo& run, std::int32_t id) { return texts.text(run, id); };
  callbacks.note = [&](const std::string& line) { note(command.quiet, line); };
  callbacks.progress = [&](std::size_t done, std::size_t all) { show_samples(bar, done, all); };
  const OrderedJson measured = measure_runs({command.runs.begin(), command.runs.end()}, options, callbacks);
  bar.finish();
  if (!command.out.empty()) write_results(command.out, "measure.json", measured, csv_tables(measured));
  fmt::print("{}", command.json ? json_line(measured) + "\n" : measure_tables(measured));
}

}  // namespace

void add_measure_command(CLI::App& program) {
  auto options = std::make_shared<MeasureCommand>();
  CLI::App* command = program.add_subcommand("measure", "The sinks of recorded runs in numbers");
  OptionTable table(*command);
  command->add_option("RUN", options->runs, "run directories, of one model or several")->required();
  declare_rule_options(table, options->rule);
  table.option("calibrate", options->calibrate,
               "also find the threshold at which this share of all cells are sinks");
  table.option("tokenizer", options->tokenizer,
               "model or folder whose tokenizer names the tokens [each run's own model]");
  table.option("out", options->out, "folder for measure.json and the tables as CSV");
  table.flag("json", options->json, "print measure.json instead of tables");
  table.flag("quiet", options->quiet, "no progress and no notes on stderr");
  command->footer("docs/measure.md describes measure.json and the CSV files, docs/methods.md every number.");
  command->callback([options] { measure_command(*options); });
}

}  // namespace sinkscope
