// `sinkscope eval`: benchmark scores under interventions and their controls.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "base/files.h"
#include "base/folder_lock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/eval_options.h"
#include "cli/eval_report.h"
#include "cli/json_lines.h"
#include "cli/progress.h"
#include "cli/run_setup.h"
#include "cli/shard.h"
#include "cli/threads.h"
#include "eval/given_responses.h"
#include "eval/posing.h"
#include "eval/responses.h"
#include "eval/result_files.h"
#include "eval/run_code.h"
#include "eval/sandbox.h"
#include "eval/scoring.h"
#include "eval/task.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A task, ready for the model.
struct ReadyTask {
  Task task;
  PosedTask posed;
  std::vector<PreparedPrompt> prompts;  // TaskKind::generate
  std::vector<Pair> pairs;              // TaskKind::choose: the choices of all problems, one after the other
};

struct Evaluation {
  const EvalOptions& options;
  const ChosenModel& chosen;
  Shard shard;
  std::filesystem::path folder;
  std::vector<ReadyTask> tasks;
  std::vector<Cell> cells;
  RunInfo info;  // of every cell's runs, but for their options and sinks
  std::optional<Transformer> model;

  bool causal() const { return chosen.config().causal(); }
  bool quiet() const { return options.run.common.quiet; }
  const Transformer& loaded() {
    if (!model) model.emplace(load_model(chosen.checkpoint, chosen.placement, chosen.dtype.type, quiet()));
    return *model;
  }
};

ReadyTask posed(const std::string& name, const EvalOptions& options) {
  ReadyTask ready{find_task(name), {}, {}, {}};
  ready.posed =
      pose_problems(ready.task, {options.data_dir, options.shots, options.num_fewshot, options.limit});
  check_puzzles(ready.task, ready.posed.problems);
  return ready;
}

ReadyTask prepared(const std::string& name, const EvalOptions& options, const ChosenModel& model) {
  ReadyTask ready = posed(name, options);
  const Task& task = ready.task;
  const PromptWrapping wrapping(options.run.chat, model);
  for (const Problem& problem : ready.posed.problems) {
    const std::string text = wrapping.text(problem.context) + problem.gen_prefix;
    const std::string id = fmt::format("{}/{}", task.name, problem.index);
    // Behind a template the choice begins without the delimiter, as the harness has it.
    for (const std::string& choice : problem.choices)
      ready.pairs.push_back({text, (wrapping.is_chat() ? "" : task.target_delimiter) + choice, id});
    if (task.kind == TaskKind::choose) continue;
    Prompt prompt{id, problem.context + problem.gen_prefix, problem.target, {}};
    ready.prompts.push_back({std::move(prompt), wrapping.encode(text)});
  }
  return ready;
}

// LLaDA's harness cuts the text with its special tokens still in it, and only then drops them; the others end
// at the first end token.
std::string response_text(const SampleRecord& record, const Task& task, const ChosenModel& model) {
  if (model.config().generation != Generation::masked) return cut_at(record.text, task.until);
  const Tokenizer& tokenizer = *model.tokenizer;
  const std::string text = cut_at(tokenizer.decode(record.output_ids, /*skip_special=*/false), task.until);
  return tokenizer.decode(tokenizer.encode(text), /*skip_special=*/true);
}

RunInfo run_info(const Evaluation& evaluation, const RunOptions& run, const Task& task) {
  RunInfo info = evaluation.info;
  RunOptions recorded = run;
  CLI::App parser;
  OptionTable table(parser);
  declare_run_options(parser, table, recorded);
  recorded = run;
  info.options = OrderedJson{{"model", absolute_if_there(run.model)}};
  info.options.update(table.to_json(unrecorded_run_options()));
  info.options["task"] = task.name;
  info.sink = describe_sinks(run.sampling.sinks);
  return info;
}

bool is_finished(const std::filesystem::path& folder, std::int64_t wanted) {
  return std::filesystem::exists(folder / "run.json") && read_run_info(folder).ended &&
         std::ssize(read_samples(folder)) == wanted;
}

std::vector<Response> generate(Evaluation& evaluation, const Cell& cell, const ReadyTask& ready) {
  const Task& task = ready.task;
  const std::filesystem::path folder = evaluation.folder / cell.name / task.name;
  const RunOptions run = run_of(evaluation.options, cell, task.gen_len, task.until, evaluation.causal());
  if (!is_finished(folder, evaluation.shard.share_of(std::ssize(ready.prompts)))) {
    const RunInfo info = run_info(evaluation, run, task);
    RunDirectory directory = std::filesystem::exists(folder / "run.json")
                                 ? RunDirectory::resume(folder)
                                 : RunDirectory::create(folder, info);
    check_resumed(info, directory, ready.prompts);
    const Sampler sampler =
        choose_sampler(run.sampling, evaluation.chosen.config().generation, evaluation.chosen.ids);
    generate_samples(evaluation.loaded(), evaluation.chosen.tokenizer, ready.prompts, sampler, run,
                     directory);
    directory.end();
  }
  std::vector<Response> responses;
  for (const SampleRecord& record : read_samples(folder)) {
    const Problem& problem = ready.posed.problems.at(static_cast<std::size_t>(record.index));
    responses.push_back({&problem, response_text(record, task, evaluation.chosen), {}});
  }
  return responses;
}

// The requests of this shard, each with the seed it has among all.
std::vector<LikelihoodRequest> shard_requests(const Evaluation& evaluation, const ReadyTask& ready,
                                              const LikelihoodSettings& settings) {
  const std::vector<LikelihoodRequest> all =
      make_requests(ready.pairs, *evaluation.chosen.tokenizer, evaluation.chosen.config(), settings);
  std::vector<LikelihoodRequest> chosen;
  auto begin = all.begin();
  for (const Problem& problem : ready.posed.problems) {
    const auto end = begin + static_cast<std::ptrdiff_t>(problem.choices.size());
    if (evaluation.shard.has(problem.index)) chosen.insert(chosen.end(), begin, end);
    begin = end;
  }
  return chosen;
}

std::vector<Response> choose(Evaluation& evaluation, const Cell& cell, const ReadyTask& ready) {
  LikelihoodSettings settings = evaluation.options.likelihoods;
  if (!evaluation.causal()) settings.likelihood.mask_id = evaluation.chosen.ids.mask.value_or(0);
  const std::vector<LikelihoodRequest> requests = shard_requests(evaluation, ready, settings);
  const std::filesystem::path folder = evaluation.folder / cell.name / ready.task.name;
  make_folders(folder);
  const std::filesystem::path file = folder / "likelihoods.jsonl";
  {
    LikelihoodLines lines(file.string(), /*resume=*/true, requests);
    if (lines.finished() < requests.size())
      score_all(evaluation.loaded(), requests, settings, lines, evaluation.quiet());
  }
  std::vector<Response> responses;
  const std::vector<OrderedJson> lines = read_objects(file.string());
  auto line = lines.begin();
  for (const Problem& problem : ready.posed.problems) {
    if (!evaluation.shard.has(problem.index)) continue;
    Response& response = responses.emplace_back(Response{&problem, "", {}});
    for (std::size_t i = 0; i < problem.choices.size(); ++i)
      response.loglikelihoods.push_back((line++)->at("loglikelihood").get<double>());
  }
  return responses;
}

// Throws UsageError where programs would be run and that is not allowed, Error where it cannot be done
// safely.
void check_code(const std::vector<ReadyTask>& tasks, const EvalOptions& options) {
  for (const ReadyTask& ready : tasks) {
    if (ready.task.kind == TaskKind::choose || ready.task.metric != Metric::code) continue;
    if (!options.confirm_run_unsafe_code)
      throw UsageError("task {} runs programs that the model writes: --confirm-run-unsafe-code allows it",
                       ready.task.name);
    return require_sandbox();
  }
}

std::vector<OrderedJson> scored(const Task& task, std::span<const Response> responses,
                                const EvalOptions& options) {
  const CodeRunner runner = [&](std::span<const CodeProgram> programs) {
    Progress bar("running programs", options.run.common.quiet);
    return run_code(programs, options.run.common.threads.value_or(default_threads()),
                    [&](std::size_t finished) {
                      bar.show(static_cast<double>(finished) / static_cast<double>(programs.size()),
                               fmt::format("program {} of {}", finished, programs.size()));
                    });
  };
  return score_responses(task, responses, runner);
}

// Likelihoods come from single passes: there is no step before whose sinks could be masked.
bool applies(const Cell& cell, const Task& task) {
  return task.kind == TaskKind::generate || cell.top_k == 0;
}

std::vector<OrderedJson> lines_of(Evaluation& evaluation, const Cell& cell, const ReadyTask& ready) {
  const std::filesystem::path path = samples_path(evaluation.folder / cell.name, ready.task.name);
  if (std::filesystem::exists(path)) return read_lines(path);
  const std::vector<Response> responses = ready.task.kind == TaskKind::choose
                                              ? choose(evaluation, cell, ready)
                                              : generate(evaluation, cell, ready);
  const std::vector<OrderedJson> lines = scored(ready.task, responses, evaluation.options);
  write_lines(path, lines);
  return lines;
}

// What results.json says beside the results.
OrderedJson header_of(const EvalOptions& options, const Cell& cell,
                      const std::vector<const ReadyTask*>& tasks, const std::string& device,
                      const OrderedJson& recorded) {
  OrderedJson header{{"group_subtasks", OrderedJson::object()},
                     {"configs", OrderedJson::object()},
                     {"versions", OrderedJson::object()},
                     {"n-shot", OrderedJson::object()},
                     {"n-samples", OrderedJson::object()}};
  for (const ReadyTask* ready : tasks) {
    const Task& task = ready->task;
    header["group_subtasks"][task.name] = OrderedJson::array();
    header["configs"][task.name] = task.description;
    header["versions"][task.name] = task.version;
    header["n-shot"][task.name] = options.num_fewshot.value_or(task.shots.count);
    header["n-samples"][task.name] = {{"original", ready->posed.original}, {"effective", 0}};
  }
  header["config"] = {{"model", options.run.model},
                      {"model_args", recorded},
                      {"batch_size", options.run.batch},
                      {"device", device},
                      {"limit", options.limit ? OrderedJson(*options.limit) : OrderedJson()},
                      {"fewshot_seed", 1234},
                      {"seed", options.run.seed},
                      {"intervention", cell_json(cell)}};
  header["git_hash"] = commit_of(std::filesystem::current_path());
  header["sinkscope_version"] = SINKSCOPE_VERSION;
  header["date"] = std::time(nullptr);
  return header;
}

// Folders and results go by the tasks' names.
void check_names(const std::vector<ReadyTask>& tasks) {
  for (std::size_t i = 0; i + 1 < tasks.size(); ++i)
    if (tasks[i].task.name == tasks.back().task.name)
      throw UsageError("--tasks names two tasks \"{}\"; names that differ would be right",
                       tasks.back().task.name);
}

void check_any_cell(const Evaluation& evaluation) {
  for (const ReadyTask& ready : evaluation.tasks)
    for (const Cell& cell : evaluation.cells)
      if (applies(cell, ready.task)) return;
  throw UsageError(
      "--sink-top-k {}: likelihoods of choices are measured with nothing masked only; 0 would be right",
      evaluation.options.sink_top_k);
}

// What was asked and what is right, so that an evaluation goes on, and shards join, only with the same.
std::string fingerprint(const ReadyTask& ready) {
  OrderedJson asked = OrderedJson::array({ready.task.description});
  for (const Problem& problem : ready.posed.problems)
    asked.push_back({problem.document, problem.context, problem.gen_prefix, problem.target, problem.choices});
  return sha256_of_text(json_line(asked));
}

OrderedJson tasks_json(const std::vector<ReadyTask>& tasks) {
  OrderedJson list = OrderedJson::array();
  for (const ReadyTask& ready : tasks)
    list.push_back({{"name", ready.task.name},
                    {"problems", ready.posed.problems.size()},
                    {"fingerprint", fingerprint(ready)}});
  return list;
}

void check_same_tasks(const std::filesystem::path& folder, const OrderedJson& tasks) {
  const OrderedJson before = read_summary(folder / "eval.json").value("tasks", OrderedJson());
  if (before != tasks)
    throw Error("{}: the tasks or their data are not those the evaluation began with", folder.string());
}

// Everything that cannot be is said before the first sample.
void check_cells(const Evaluation& evaluation) {
  for (const ReadyTask& ready : evaluation.tasks)
    for (const Cell& cell : evaluation.cells) {
      if (ready.prompts.empty()) continue;
      const RunOptions run =
          run_of(evaluation.options, cell, ready.task.gen_len, ready.task.until, evaluation.causal());
      check_applicable(run.sampling, evaluation.chosen.config());
      (void)choose_sampler(run.sampling, evaluation.chosen.config().generation, evaluation.chosen.ids);
      check_against_model(ready.prompts, evaluation.chosen.config(), run);
      check_run_memory(ready.prompts, run, evaluation.chosen);
      if (&cell == &evaluation.cells.front())
        note_long_samples(ready.prompts, evaluation.chosen.config(), run);
    }
}

std::vector<CellLines> run_cells(Evaluation& evaluation, const OrderedJson& options) {
  std::vector<CellLines> results;
  for (const Cell& cell : evaluation.cells) {
    CellLines& result = results.emplace_back(CellLines{cell, {}});
    std::vector<const ReadyTask*> tasks;
    for (const ReadyTask& ready : evaluation.tasks) {
      if (!applies(cell, ready.task)) continue;
      tasks.push_back(&ready);
      result.tasks.emplace_back(ready.task.name, lines_of(evaluation, cell, ready));
      note(evaluation.quiet(), score_note(result));
    }
    if (tasks.empty()) continue;
    write_cell_results(
        evaluation.folder, result,
        header_of(evaluation.options, cell, tasks, evaluation.chosen.placement.device.str(), options));
  }
  return results;
}

std::filesystem::path folder_of(const EvalOptions& options) {
  const RunOptions& run = options.run;
  if (!run.resume.empty()) return run.resume;
  if (!run.run_dir.empty()) {
    const std::filesystem::path folder = shard_folder(run.run_dir, parse_shard(run.shard));
    if (std::filesystem::exists(folder) && !std::filesystem::is_empty(folder))
      throw UsageError("{} is not empty; --resume {} goes on with an evaluation", folder.string(),
                       folder.string());
    make_folders(folder);
    return folder;
  }
  return make_run_folder(run.out, {{}, options.gen_len.value_or(0), {}}, std::time(nullptr));
}

// Descriptions are files that must be found from everywhere.
std::string absolute_tasks(const std::string& names) {
  std::vector<std::string> absolute;
  for (const std::string& name : parse_names(names, "--tasks"))
    absolute.push_back(name.ends_with(".json") ? absolute_if_there(name) : name);
  return fmt::format("{}", fmt::join(absolute, ","));
}

// Answers from elsewhere in the place of a model's.
void score_given(const EvalOptions& options, const OptionTable& table, const CLI::App& command) {
  refuse_beside(
      command,
      {"responses", "MODEL", "resume", "tasks", "data-dir", "shots", "num-fewshot", "limit", "resamples",
       "confirm-run-unsafe-code", "out", "run-dir", "json", "quiet", "threads", "help"},
      "--responses: the answers are there already");
  if (!options.run.shard.empty())
    throw UsageError("--responses is scored by one process; it was started as shard {}", options.run.shard);
  if (!options.run.model.empty() || !options.run.resume.empty())
    throw UsageError("--responses scores answers that are there already; leave {} out",
                     options.run.model.empty() ? "--resume" : "MODEL");
  if (options.tasks.find(',') != std::string::npos)
    throw UsageError("--responses answers one task; --tasks names several: {}", options.tasks);
  std::vector<ReadyTask> tasks{posed(options.tasks, options)};
  const ReadyTask& ready = tasks.front();
  if (ready.task.kind == TaskKind::choose)
    throw UsageError("--responses holds texts, and task {} compares likelihoods", ready.task.name);
  check_code(tasks, options);
  const std::vector<Response> responses =
      read_responses(options.responses, ready.posed.problems, ready.task.until);
  const OrderedJson recorded = table.to_json(unrecorded_eval_options());
  const std::filesystem::path folder = folder_of(options);
  RunInfo info;
  info.version = SINKSCOPE_VERSION;
  info.model.name = options.responses;
  const Cell plain{"plain", 0, "", "none"};
  OrderedJson summary = begin_summary(folder, info, recorded, {plain}, tasks_json(tasks));
  const CellLines result{plain, {{ready.task.name, scored(ready.task, responses, options)}}};
  make_folders(folder / plain.name);
  write_lines(samples_path(folder / plain.name, ready.task.name), result.tasks.front().second);
  write_cell_results(folder, result, header_of(options, plain, {&ready}, "", recorded));
  end_summary(folder, summary, {result}, static_cast<std::size_t>(options.resamples));
  note(options.run.common.quiet,
       fmt::format("{} answers; files are in {}", responses.size(), folder.string()));
  fmt::print("{}", options.json ? json_line(summary) + "\n" : summary_tables(summary));
}

// `table` is the one that declared `options`.
void eval_command(EvalOptions& options, const OptionTable& table, const CLI::App& command) {
  share_work(options.run);
  resolve(options);
  if (!options.responses.empty()) return score_given(options, table, command);
  if (options.run.resume.empty() && command.get_option("--responses")->count() > 0)
    throw UsageError("--responses is empty; it names a file with answers");
  if (options.run.model.empty())
    throw UsageError("MODEL is missing: a directory, a built-in name or a Hugging Face id");
  const ChosenModel chosen = choose_model(options.run, /*needs_tokenizer=*/true);
  Evaluation evaluation{options, chosen, parse_shard(options.run.shard),
                        {},      {},     cells_of(options, chosen.config().causal() ? "last" : "columns"),
                        {},      {}};
  validate(options.likelihoods.likelihood, chosen.config().generation);
  for (const std::string& name : parse_names(options.tasks, "--tasks")) {
    evaluation.tasks.push_back(prepared(name, options, chosen));
    check_names(evaluation.tasks);
  }
  check_any_cell(evaluation);
  check_code(evaluation.tasks, options);
  check_cells(evaluation);
  OrderedJson recorded{{"model", absolute_if_there(options.run.model)}};
  recorded.update(table.to_json(unrecorded_eval_options()));
  for (const char* name : {"data_dir", "shots"})
    recorded[name] = absolute_if_there(recorded[name].get<std::string>());
  recorded["tasks"] = absolute_tasks(options.tasks);
  const OrderedJson tasks = tasks_json(evaluation.tasks);
  if (!options.run.resume.empty()) check_same_tasks(options.run.resume, tasks);
  evaluation.folder = folder_of(options);
  const FolderLock lock(evaluation.folder);
  evaluation.info = describe_run(chosen, table, options.run);
  evaluation.info.command = "eval";
  OrderedJson summary = begin_summary(evaluation.folder, evaluation.info, recorded, evaluation.cells, tasks);
  note(options.run.common.quiet, fmt::format("{} cells of {} tasks into {}", evaluation.cells.size(),
                                             evaluation.tasks.size(), evaluation.folder.string()));
  try {
    const std::vector<CellLines> results = run_cells(evaluation, recorded);
    end_summary(evaluation.folder, summary, results, static_cast<std::size_t>(options.resamples));
  } catch (const std::exception& error) {
    throw Error("{} (what is finished is kept; go on with: sinkscope eval --resume {})", message_of(error),
                evaluation.folder.string());
  }
  fmt::print("{}", options.json ? json_line(summary) + "\n" : summary_tables(summary));
}

// The options of the interrupted evaluation, with the threads, quietness and output of this command.
void resume_command(const CLI::App& command, const EvalOptions& given) {
  refuse_beside_resume(command, {"resume", "threads", "quiet", "json", "help"}, "eval.json");
  const std::filesystem::path file = std::filesystem::path(given.run.resume) / "eval.json";
  const OrderedJson summary = read_summary(file);
  if (!summary.at("options").value("responses", std::string()).empty())
    throw UsageError("{} scored --responses, which is done at once: there is nothing to go on with",
                     file.string());
  EvalOptions options;
  CLI::App parser;
  OptionTable table(parser);
  declare_eval_options(parser, table, options);
  parse_recorded(parser, table, summary.at("options"), file.string(), options.run.model);
  options.run.resume = given.run.resume;
  options.run.common.threads = given.run.common.threads;
  options.run.common.quiet = given.run.common.quiet;
  options.json = given.json;
  eval_command(options, table, parser);
}

}  // namespace

void add_eval_command(CLI::App& program) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      program.add_subcommand("eval", "Benchmark scores under interventions and controls of equal budget");
  auto table = std::make_shared<OptionTable>(*command);
  declare_eval_options(*command, *table, *options);
  command->footer("docs/eval.md describes the tasks, how to describe one, and the files.");
  command->callback([options, table, command] {
    if (options->run.resume.empty())
      eval_command(*options, *table, *command);
    else
      resume_command(*command, *options);
  });
}

}  // namespace sinkscope
