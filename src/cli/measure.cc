// `sinkscope measure`: the sinks of recorded runs in numbers.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/measure_autoregressive.h"
#include "cli/measure_tables.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
#include "cli/rule_options.h"
#include "cli/token_texts.h"
#include "measure/autoregressive.h"
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
  ModelMeasureOptions autoregressive;
};

MeasureOptions options_of(const MeasureCommand& command) {
  const MeasureOptions options{detection_of(command.rule), command.calibrate};
  validate_measure(options);
  return options;
}

void show(const MeasureCommand& command, const std::string& file, const OrderedJson& measured,
          const std::vector<CsvTable>& csv, const std::string& tables) {
  if (!command.out.empty()) write_results(command.out, file, measured, csv);
  fmt::print("{}", command.json ? json_line(measured) + "\n" : tables);
}

void measure_recorded_runs(const MeasureCommand& command) {
  const MeasureOptions options = options_of(command);
  const bool quiet = command.autoregressive.common.quiet;
  check_result_folder(command.out, "measure.json and the tables");
  TokenTexts texts(command.tokenizer, quiet);
  Progress bar("measuring", quiet);
  MeasureCallbacks callbacks;
  callbacks.token_text = [&](const RunInfo& run, std::int32_t id) { return texts.text(run, id); };
  callbacks.note = [&](const std::string& line) { note(quiet, line); };
  callbacks.progress = [&](std::size_t done, std::size_t all) { show_samples(bar, done, all); };
  const OrderedJson measured = measure_runs({command.runs.begin(), command.runs.end()}, options, callbacks);
  bar.finish();
  show(command, "measure.json", measured, csv_tables(measured), measure_tables(measured));
}

void measure_model(const MeasureCommand& command) {
  check_result_folder(command.out, "ar_measure.json and the tables");
  ModelMeasureOptions options = command.autoregressive;
  options.epsilon = command.rule.epsilon.value_or(options.epsilon);
  const OrderedJson measured = measure_autoregressive(options);
  show(command, "ar_measure.json", measured, autoregressive_tables(measured), autoregressive_text(measured));
}

// Runs or a model, and no option of the other.
void measure_command(const MeasureCommand& command, const CLI::App& parsed) {
  const bool of_model = parsed.count("--ar") > 0;
  if (of_model == !command.runs.empty())
    throw UsageError(
        "measure takes either run directories (RUN) or an autoregressive model (--ar MODEL) (see sinkscope "
        "measure --help)");
  if (!of_model) {
    refuse_autoregressive_options(parsed);
    return measure_recorded_runs(command);
  }
  for (const char* name :
       {"--rule", "--scale", "--z", "--steepness", "--top-k", "--calibrate", "--tokenizer"})
    if (parsed.count(name) > 0) throw UsageError("{} is of recorded runs (RUN), not of --ar MODEL", name);
  measure_model(command);
}

}  // namespace

void add_measure_command(CLI::App& program) {
  auto options = std::make_shared<MeasureCommand>();
  CLI::App* command = program.add_subcommand(
      "measure", "The sinks of recorded runs, or of an autoregressive model on texts, in numbers");
  OptionTable table(*command);
  command->add_option("RUN", options->runs, "run directories, of one model or several");
  declare_rule_options(table, options->rule, "visible, --ar");
  table.option("calibrate", options->calibrate,
               "also find the threshold at which this share of all cells are sinks");
  table.option("tokenizer", options->tokenizer,
               "model or folder whose tokenizer names the tokens [each run's own model]");
  table.option("out", options->out, "folder for measure.json (--ar: ar_measure.json) and the tables as CSV");
  table.flag("json", options->json, "print that JSON instead of tables");
  declare_autoregressive_options(table, options->autoregressive);
  command->footer("docs/measure.md describes the JSON and the CSV files, docs/methods.md every number.");
  command->callback([options, command] { measure_command(*options, *command); });
}

}  // namespace sinkscope
