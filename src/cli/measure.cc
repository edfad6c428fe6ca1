// `sinkscope measure`: the sinks of recorded runs in numbers.
#include <fmt/format.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <map>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/measure_tables.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
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
  bool quiet = false;
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
  table.choice("rule", options->rule, {"paper", "zscore", "visible", "topk", "soft"},
               "what makes a key a sink (docs/methods.md)");
  table.choice(
      "scale", options->scale, {"sum", "mean", "percent"},
      "unit of C and of rule paper's epsilon: sum of a column, divided by the positions, in percent");
  table.option("epsilon", options->epsilon,
               "paper: how far above the mean of the others [3]; visible: mean attention [0.3]");
  table.option("z", options->z, "zscore [3], soft [2]: standard deviations above the mean");
  table.option("steepness", options->steepness, "soft: of the sigmoid, per unit of --scale [5]");
  table.option("top-k", options->top_k, "topk: the K largest of each map [1]");
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
