// `sinkscope measure`: the sinks of recorded runs in numbers.
#include <fmt/format.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <map>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/measure_autoregressive.h"
#include "cli/measure_tables.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
#include "measure/autoregressive.h"
#include "measure/csv_tables.h"
#include "measure/measure_runs.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct MeasureCommand {
  std::vector<std::string> runs;
  std::string rule = "paper";
  std::string scale = "sum";
  std::optional<double> epsilon;
  std::optional<double> z;
  std::optional<double> steepness;
  std::optional<int> top_k;
  double calibrate = 0.04;
  std::string tokenizer;
  std::string out;
  bool json = false;
  ModelMeasureOptions autoregressive;
};

// An option of another rule would be read and never used.
template <typename Value>
void take(const char* option, const std::optional<Value>& given, Value& value, bool used,
          const MeasureCommand& command, const char* rules) {
  if (!given) return;
  if (!used) throw UsageError("{} is of {}; --rule is {}", option, rules, command.rule);
  value = *given;
}

MeasureOptions options_of(const MeasureCommand& command) {
  const SinkRule rule = parse_sink_rule(command.rule);
  MeasureOptions options{default_detection(rule), command.calibrate};
  DetectionOptions& detection = options.detection;
  detection.scale = parse_sink_scale(command.scale);
  take("--epsilon", command.epsilon, detection.epsilon, rule == SinkRule::paper || rule == SinkRule::visible,
       command, "the rules paper and visible");
  take("--z", command.z, detection.z, rule == SinkRule::zscore || rule == SinkRule::soft, command,
       "the rules zscore and soft");
  take("--steepness", command.steepness, detection.steepness, rule == SinkRule::soft, command,
       "the rule soft");
  take("--top-k", command.top_k, detection.top_k, rule == SinkRule::topk, command, "the rule topk");
  validate_measure(options);
  return options;
}

// Texts of token ids, from the tokenizer of each run's model where it is on this machine.
class TokenTexts {
 public:
  TokenTexts(std::string tokenizer, bool quiet) : tokenizer_(std::move(tokenizer)), quiet_(quiet) {
    if (!tokenizer_.empty()) loaded_.emplace(tokenizer_, Tokenizer::load(locate_model(tokenizer_)));
  }

  std::optional<std::string> text(const RunInfo& run, std::int32_t id) {
    const std::optional<Tokenizer>& tokenizer = tokenizer_of(run);
    return tokenizer ? std::optional(tokenizer->label(id)) : std::nullopt;
  }

 private:
  const std::optional<Tokenizer>& tokenizer_of(const RunInfo& run) {
    std::string model = tokenizer_.empty() ? run.model.name : tokenizer_;
    if (tokenizer_.empty() && run.options.is_object() && run.options.contains("model") &&
        run.options.at("model").is_string())
      model = run.options.at("model").get<std::string>();
    const auto [place, fresh] = loaded_.try_emplace(model);
    if (!fresh) return place->second;
    try {
      place->second = Tokenizer::load(locate_model(model));
    } catch (const std::exception& error) {
      note(quiet_, fmt::format("tokens have no texts, --tokenizer would give them: {}", error.what()));
    }
    return place->second;
  }

  std::string tokenizer_;
  bool quiet_;
  std::map<std::string, std::optional<Tokenizer>> loaded_;
};

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
  options.epsilon = command.epsilon.value_or(options.epsilon);
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
  table.choice("rule", options->rule, {"paper", "zscore", "visible", "topk", "soft"},
               "what makes a key a sink (docs/methods.md)");
  table.choice(
      "scale", options->scale, {"sum", "mean", "percent"},
      "unit of C and of rule paper's epsilon: sum of a column, divided by the positions, in percent");
  table.option("epsilon", options->epsilon,
               "paper: how far above the mean of the others [3]; visible, --ar: mean attention [0.3]");
  table.option("z", options->z, "zscore [3], soft [2]: standard deviations above the mean");
  table.option("steepness", options->steepness, "soft: of the sigmoid, per unit of --scale [5]");
  table.option("top-k", options->top_k, "topk: the K largest of each map [1]");
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
