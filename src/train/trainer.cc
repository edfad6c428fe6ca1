#include "train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/folder_lock.h"
#include "base/output_file.h"
#include "ops/differentiable/adamw.h"
#include "ops/differentiable/kept_memory.h"
#include "train/batches.h"
#include "train/objective.h"
#include "train/probe.h"
#include "train/training_checkpoint.h"
#include "train/training_tokenizer.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The run's own copy of the data, made where there is none of this key.
TokenCache cached_tokens(const std::vector<fs::path>& files, const TrainingTokenizer& tokenizer,
                         const fs::path& cache, const TrainingRun& run) {
  const std::uint64_t key = token_cache_key(files, tokenizer.folder);
  if (fs::exists(cache)) {
    TokenCache existing(cache);
    if (existing.key() == key) return existing;
    if (run.resume)
      throw Error("{} was made from other files than there are now; a run can go on only with its own data",
                  cache.string());
  }
  write_token_cache(files, tokenizer.encoder(), key, cache, [&](double share) {
    if (run.preparing) run.preparing("reading texts", share);
  });
  return TokenCache(cache);
}

// Lines of steps that will be made again go; the probe of step 0 is made again where nothing was trained yet.
void cut_metrics(const fs::path& file, std::int64_t step) {
  if (!fs::exists(file)) return;
  std::string kept;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (step > 0 && json.is_object() && json.contains("step") && json.value("step", std::int64_t{0}) <= step)
      kept += line + "\n";
  }
  write_file_atomically(file, kept);
}

// Sums since the last line of the metrics.
struct Since {
  Clock::time_point begin = Clock::now();
  double loss = 0, token_loss = 0;
  std::int64_t passes = 0;  // that asked for something
  std::int64_t tokens = 0;
};

struct PassLoss {
  bool asked = false;  // for anything: masks are drawn, and may be none
  double loss = 0, token_loss = 0;
  std::int64_t tokens = 0;
};

class Trainer {
 public:
  Trainer(const TrainConfig& config, const TrainingRun& run, const TrainingTokenizer& tokenizer);

  /// What comes before the first step.
  void begin();
  TrainingEnd go();

 private:
  TrainingState first_state() const;
  PassLoss pass(std::int64_t number);
  double update(std::int64_t step);
  void average();
  void step(std::int64_t step);
  void report(std::int64_t step, double gradient_norm);
  void probe(std::int64_t step);
  void write_line(const nlohmann::ordered_json& line) { metrics_->write(line.dump() + "\n"); }
  bool stopped() const { return run_.stop != nullptr && run_.stop->load(); }

  const TrainConfig& config_;
  const TrainingRun& run_;
  const TrainingTokenizer& tokenizer_;
  TokenCache tokens_;
  BatchOrder order_;
  std::optional<ProbeTexts> probe_;
  TrainingState state_;
  std::unique_ptr<OutputFile> metrics_;
  Since since_;
};

// At least one text has to ask for something: an answer within the context, a token behind the prefix.
void check_asks(const TrainConfig& config, const TokenCache& tokens) {
  if (config.data.layout == DataLayout::joined) return;
  for (std::int64_t d = 0; d < tokens.documents(); ++d) {
    const TokenDocument document = tokens.document(d);
    const std::int64_t end = std::min<std::int64_t>(config.context, std::ssize(document.ids));
    const std::int64_t first = config.data.answer_only ? document.prompt_length : 0;
    if (end > std::max(first, config.model.attention.prefix)) return;
  }
  throw Error(
      "{}: in no text is there a token to learn within the context of {} tokens; a larger context{} would be "
      "right",
      config.file.string(), config.context, config.model.attention.prefix > 0 ? " or a smaller prefix" : "");
}

std::optional<ProbeTexts> probe_of(const TrainConfig& config, const TokenCache& tokens,
                                   const TrainingTokenizer& tokenizer, const TrainingRun& run) {
  if (config.probe.every == 0) return std::nullopt;
  if (config.probe.files.empty()) return probe_texts(tokens, config.probe);
  return probe_texts(cached_tokens(config.probe.files, tokenizer, run.folder / "probe.bin", run),
                     config.probe);
}

Trainer::Trainer(const TrainConfig& config, const TrainingRun& run, const TrainingTokenizer& tokenizer)
    : config_(config),
      run_(run),
      tokenizer_(tokenizer),
      tokens_(cached_tokens(config.data.files, tokenizer, run.folder / "tokens.bin", run)),
      order_(tokens_, config, tokenizer.eos),
      probe_(probe_of(config, tokens_, tokenizer, run)),
      state_(first_state()) {
  check_asks(config, tokens_);
  const fs::path metrics = run.folder / "metrics.jsonl";
  cut_metrics(metrics, state_.step);
  metrics_ = std::make_unique<OutputFile>(metrics, O_WRONLY | O_CREAT | O_APPEND, metrics.string());
}

TrainingState Trainer::first_state() const {
  const std::vector<std::int64_t> steps = resumable_steps(run_.folder);
  if (!run_.resume || steps.empty()) return new_state(config_, run_.device);
  if (run_.note) run_.note(fmt::format("going on behind step {}", steps.back()));
  return read_checkpoint(config_, run_.folder, steps.back(), run_.device);
}

// One forward and backward pass; the gradients add up in the parameters.
PassLoss Trainer::pass(std::int64_t number) {
  const TrainingTask task = make_task(order_.batch(number), config_, tokenizer_.mask, number,
                                      1.0 / static_cast<double>(config_.accumulate));
  const std::int64_t tokens = task.rows * task.length;
  if (task.predicted.rows.numel() == 0) return {false, 0, 0, tokens};
  const ProductPrecision precision = config_.bfloat16 ? ProductPrecision::bf16 : ProductPrecision::f32;
  const Backend backend = run_.device.is_cpu() ? Backend::cpu : Backend::aten;
  const at::Tensor hidden = hidden_rows(state_.model, task.ids.to(run_.device), task.rows, precision);
  const CrossEntropy entropy = cross_entropy(backend, hidden, state_.model.head, task.predicted, precision);
  const auto loss = entropy.loss.item<double>();
  if (!std::isfinite(loss))
    throw Error("the loss is not finite in step {}; a smaller learning_rate or clip would be right",
                number / config_.accumulate + 1);
  entropy.loss.backward();
  return {true, loss, entropy.row_losses.mean().item<double>(), tokens};
}

// The optimiser's step. Returns the gradient's norm before clipping.
double Trainer::update(std::int64_t step) {
  const at::NoGradGuard no_gradients;
  const Backend backend = run_.device.is_cpu() ? Backend::cpu : Backend::aten;
  const OptimizerConfig& optimizer = config_.optimizer;
  std::vector<at::Tensor> gradients;
  std::vector<AdamwParameter> parameters;
  for (std::size_t i = 0; i < state_.model.parameters.size(); ++i) {
    const NamedParameter& parameter = state_.model.parameters[i];
    gradients.push_back(parameter.value.grad());
    parameters.push_back({parameter.value, gradients.back(), state_.first_moment[i], state_.second_moment[i],
                          parameter.is_matrix() ? optimizer.weight_decay : 0});
  }
  const double norm = gradient_norm(backend, gradients);
  adamw_step(backend, parameters,
             {learning_rate_at(config_, step), optimizer.beta1, optimizer.beta2, optimizer.eps, step,
              clipping_scale(norm, optimizer.clip)});
  for (NamedParameter& parameter : state_.model.parameters) parameter.value.mutable_grad() = at::Tensor();
  return norm;
}

void Trainer::average() {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < state_.average.size(); ++i)
    state_.average[i].lerp_(state_.model.parameters[i].value, 1 - *config_.optimizer.ema);
}

void Trainer::step(std::int64_t step) {
  for (std::int64_t a = 0; a < config_.accumulate; ++a) {
    const PassLoss loss = pass((step - 1) * config_.accumulate + a);
    since_.loss += loss.loss * static_cast<double>(config_.accumulate);
    since_.token_loss += loss.token_loss;
    since_.passes += loss.asked ? 1 : 0;
    since_.tokens += loss.tokens;
  }
  const double norm = update(step);
  average();
  state_.step = step;
  if (step % config_.log_every == 0 || step == config_.steps) report(step, norm);
}

void Trainer::report(std::int64_t step, double gradient_norm) {
  const auto passes = static_cast<double>(since_.passes);  // without one: 0 / 0, null in the file
  const double seconds = seconds_since(since_.begin);
  const StepReport report{step,
                          since_.loss / passes,
                          since_.token_loss / passes,
                          gradient_norm,
                          learning_rate_at(config_, step),
                          static_cast<double>(since_.tokens) / seconds};
  write_line({{"step", step},
              {"loss", report.loss},
              {"token_loss", report.token_loss},
              {"gradient_norm", report.gradient_norm},
              {"learning_rate", report.learning_rate},
              {"tokens_per_second", report.tokens_per_second}});
  since_ = {};
  if (run_.stepped) run_.stepped(report);
}

void Trainer::probe(std::int64_t step) {
  const Clock::time_point begin = Clock::now();
  nlohmann::ordered_json line{{"step", step}};
  line["probe"] = probe_sinks(state_.model, *probe_, tokenizer_.mask, config_.seed);
  write_line(line);
  since_.begin += std::chrono::duration_cast<Clock::duration>(Clock::now() - begin);
}

void Trainer::begin() {
  if (state_.step == 0 && probe_) probe(0);
}

TrainingEnd Trainer::go() {
  const auto due = [&](std::int64_t every) {
    return every > 0 && (state_.step % every == 0 || state_.step == config_.steps);
  };
  while (state_.step < config_.steps && !stopped()) {
    step(state_.step + 1);
    if (probe_ && due(config_.probe.every)) probe(state_.step);
    if (due(config_.checkpoint_every)) write_checkpoint(config_, state_, run_.folder, tokenizer_.folder);
  }
  if (stopped() && state_.step > 0) write_checkpoint(config_, state_, run_.folder, tokenizer_.folder);
  return {state_.step, state_.model.parameter_count(), state_.step == config_.steps};
}

// What train() found in place of the run's folder.
enum class Found { nothing, empty_folder, run };

// A run that was killed as it wrote its first file has left that under its temporary name, and nothing that
// counts.
bool holds_nothing(const fs::path& folder) {
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const auto& entry) { return entry.path().filename() == "training.json.tmp"; });
}

// A new run's folder gets the config; an old one must be of the same.
Found claim_folder(const TrainConfig& config, const TrainingRun& run) {
  const fs::path note = run.folder / "training.json";
  if (!fs::exists(note)) {
    if (fs::exists(run.folder) && !holds_nothing(run.folder))
      throw Error("{} is not empty and holds no training run; a new folder would be right",
                  run.folder.string());
    const Found found = fs::exists(run.folder) ? Found::empty_folder : Found::nothing;
    make_folders(run.folder);
    write_file_atomically(note, read_file(config.file));
    return found;
  }
  if (!run.resume)
    throw Error("{} holds a run already; --resume goes on with it, another --out begins a new one",
                run.folder.string());
  if (config_fingerprint(read_json_file(note)) != config.fingerprint)
    throw Error("{} is the config of the run in {}, and {} differs from it; another --out would be right",
                note.string(), run.folder.string(), config.file.string());
  return Found::run;
}

// Weights, gradients, both moments and the averages, in float32; what passes need comes on top.
void check_memory(const TrainConfig& config, std::int64_t available) {
  const double copies = config.optimizer.ema ? 5 : 4;
  const double needed = parameter_count(config.model) * copies * sizeof(float);
  if (needed > static_cast<double>(available))
    throw Error(
        "{}: training {:.3g} parameters takes more than {:.1f} GB, and {:.1f} GB are free; a smaller model "
        "would be right",
        config.file.string(), parameter_count(config.model), needed * 1e-9,
        static_cast<double>(available) * 1e-9);
}

// Takes away what a new run has made, unless it could begin.
class NewRun {
 public:
  NewRun(const fs::path& folder, Found found) : folder_(folder), found_(found) {}
  ~NewRun() {
    if (begun_ || found_ == Found::run) return;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) fs::remove_all(entry.path(), ignored);
    if (found_ == Found::nothing) fs::remove(folder_, ignored);
  }
  NewRun(const NewRun&) = delete;
  NewRun& operator=(const NewRun&) = delete;
  void begin() { begun_ = true; }

 private:
  fs::path folder_;
  Found found_;
  bool begun_ = false;
};

}  // namespace

TrainingEnd train(const TrainConfig& config, const TrainingRun& run) {
  keep_freed_memory();
  const Found found = claim_folder(config, run);
  const FolderLock lock(run.folder);  // before NewRun, which would take away another process's run
  NewRun made(run.folder, found);
  const TrainingTokenizer tokenizer = prepare_training_tokenizer(config, run.folder / "tokenizer");
  TrainConfig completed = config;
  tokenizer.complete(completed.model);
  if (run.available_bytes) check_memory(completed, *run.available_bytes);
  Trainer trainer(completed, run, tokenizer);
  trainer.begin();
  made.begin();
  return trainer.go();
}

}  // namespace sinkscope
