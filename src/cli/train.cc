// `sinkscope train`: small models trained from scratch, their sinks watched.
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/threads.h"
#include "draw/gnuplot.h"
#include "draw/training_curves.h"
#include "train/trainer.h"

namespace sinkscope {
namespace {

struct TrainOptions {
  std::string config;
  std::string out;
  bool resume = false;
  std::string device = "cpu";
  std::optional<int> threads;
  bool plot = false;
  bool quiet = false;
};

std::atomic<bool> stop_asked{false};

// The first interrupt lets the step end and writes a checkpoint, the second one ends the program.
void ask_to_stop(int signal) {
  stop_asked = true;
  std::signal(signal, SIG_DFL);
}

// The model is there, whatever becomes of its picture.
void plot(const std::filesystem::path& folder, bool quiet) {
  try {
    note(quiet, plot_training(folder / "metrics.jsonl", folder).string());
  } catch (const Error& error) {
    note(false, error.what());
  }
}

void train_command(const TrainOptions& options) {
  if (options.out.empty()) throw UsageError("--out is empty; it names the folder of the run");
  const TrainConfig config = read_train_config(options.config);
  const at::Device device = parse_device(options.device);
  if (options.plot) require_gnuplot();
  use_threads(options.threads.value_or(default_threads()));
  const c10::InferenceMode with_gradients(false);
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  Progress bar("training", options.quiet);
  TrainingRun run{options.out, options.resume, device};
  run.preparing = [&](const char* what, double share) {
    bar.show(0, fmt::format("{} {:.0f} %", what, share * 100));
  };
  run.stepped = [&](const StepReport& report) {
    bar.show(static_cast<double>(report.step) / static_cast<double>(config.steps),
             fmt::format("step {}, loss {:.4f}, {:.4f} nats a token, gradient {:.2f}, {:.0f} tokens/s",
                         report.step, report.loss, report.token_loss, report.gradient_norm,
                         report.tokens_per_second));
  };
  run.note = [&](const std::string& line) { note(options.quiet, line); };
  run.stop = &stop_asked;
  if (device.is_cpu()) run.available_bytes = available_memory();
  const TrainingEnd end = train(config, run);
  bar.finish();
  const std::string seconds = duration_text(bar.elapsed());
  if (!end.finished)
    note(false, fmt::format("stopped behind step {} of {}; `sinkscope train {} --out {} --resume` goes on",
                            end.step, config.steps, options.config, options.out));
  else
    note(options.quiet, fmt::format("{}: {} parameters, {} steps, {}; the model is {}/latest", options.out,
                                    end.parameters, end.step, seconds, options.out));
  if (options.plot) plot(run.folder, options.quiet);
}

}  // namespace

void add_train_command(CLI::App& program) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command =
      program.add_subcommand("train", "A small model trained from scratch, its sinks watched");
  OptionTable table(*command);
  command->add_option("CONFIG", options->config, "what to train: a JSON file (docs/training.md)")->required();
  table.option("out", options->out, "folder of the run; made where there is none")->required();
  table.flag("resume", options->resume, "go on with the run in --out from its newest checkpoint");
  table.option("device", options->device, "cpu, cuda or cuda:N");
  table.option("threads", options->threads, "CPU threads; the weights do not depend on it [physical cores]")
      ->type_name("N");
  table.flag("plot", options->plot,
             "at the end draw OUT/training.png, and training.csv with its numbers (gnuplot)");
  table.flag("quiet", options->quiet, "no progress on stderr");
  command->footer(
      "An interrupt (Ctrl-C) ends the step in work and writes a checkpoint. OUT/latest is a model that the "
      "other "
      "commands read; OUT/metrics.jsonl holds losses and sinks by step.");
  command->callback([options] { train_command(*options); });
}

}  // namespace sinkscope
