// `sinkscope make-checkpoint`: random weights of real shapes, for benchmarks.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <charconv>
#include <memory>

#include "checkpoint/limits.h"
#include "checkpoint/random_checkpoint.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/threads.h"

namespace sinkscope {
namespace {

struct MakeCheckpointOptions {
  std::string like;
  std::optional<std::int64_t> layers;
  std::int64_t seed = 0;
  std::string dtype = "bf16";
  std::string shard_size = "5GB";
  std::string out;
  std::optional<int> threads;
  bool quiet = false;
};

std::string known_names() {
  std::string names;
  for (const ModelShape& shape : model_shapes())
    names += (names.empty() ? "" : ", ") + std::string(shape.name);
  return names;
}

// "5GB", "500MB", "64KiB": decimal units as the hub's libraries take them, binary ones with an i.
std::uint64_t parse_byte_size(const std::string& text) {
  constexpr std::pair<std::string_view, std::uint64_t> units[] = {{"B", 1},
                                                                  {"KB", 1'000},
                                                                  {"MB", 1'000'000},
                                                                  {"GB", 1'000'000'000},
                                                                  {"KiB", 1ULL << 10},
                                                                  {"MiB", 1ULL << 20},
                                                                  {"GiB", 1ULL << 30}};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  for (const auto& [name, bytes] : units) {
    std::uint64_t size = 0;
    if (error == std::errc() && unit == name && number > 0 && !__builtin_mul_overflow(number, bytes, &size))
      return size;
  }
  throw UsageError(
      "--shard-size {} is no size of a file; a whole number with a unit would be, like 500MB or 5GB", text);
}

RandomCheckpoint resolve(const MakeCheckpointOptions& options) {
  if (options.out.empty()) throw UsageError("--out is empty; it names the folder to make");
  RandomCheckpoint checkpoint{.shape = model_shape(options.like)};
  ModelConfig& config = checkpoint.shape.config;
  if (options.layers) config.layers = *options.layers;
  if (config.layers < 1 || config.layers > largest_layers)
    throw UsageError("--layers is {}; it must be from 1 to {} ({} has {})", config.layers, largest_layers,
                     options.like, model_shape(options.like).config.layers);
  if (options.seed < 0) throw UsageError("--seed is {}; it must be at least 0", options.seed);
  config.weights_dtype = options.dtype == "f32"   ? DType::f32
                         : options.dtype == "f16" ? DType::f16
                                                  : DType::bf16;
  checkpoint.seed = static_cast<std::uint64_t>(options.seed);
  checkpoint.shard_bytes = parse_byte_size(options.shard_size);
  checkpoint.threads = options.threads.value_or(default_threads());
  use_threads(checkpoint.threads);
  return checkpoint;
}

void make_checkpoint_command(const MakeCheckpointOptions& options) {
  const RandomCheckpoint checkpoint = resolve(options);
  const auto all = static_cast<double>(needed_bytes(checkpoint));
  Progress bar("writing", options.quiet);
  const WrittenCheckpoint written = write_random_checkpoint(checkpoint, options.out, [&](double share) {
    bar.show(share, fmt::format("{:.0f} MB/s", share * all * 1e-6 / std::max(bar.elapsed(), 1e-9)));
  });
  bar.finish();
  note(options.quiet, fmt::format("{}: {} tensors, {:.1f} MB in {} file{}, {:.1f} s", options.out,
                                  written.tensors, static_cast<double>(written.weight_bytes) * 1e-6,
                                  written.weight_files, written.weight_files == 1 ? "" : "s", bar.elapsed()));
}

}  // namespace

void add_make_checkpoint_command(CLI::App& program) {
  auto options = std::make_shared<MakeCheckpointOptions>();
  CLI::App* command =
      program.add_subcommand("make-checkpoint", "Random weights of a real model's shapes, for benchmarks");
  OptionTable table(*command);
  table.option("like", options->like, "whose shapes: " + known_names())->required()->type_name("NAME");
  table.option("layers", options->layers, "blocks [the model's]")->type_name("N");
  table.option("seed", options->seed, "of the weights");
  table.choice("dtype", options->dtype, {"bf16", "f32", "f16"}, "of the weights");
  table.option("shard-size", options->shard_size, "the most a file holds; KB, MB, GB, KiB, MiB, GiB");
  table.option("out", options->out, "folder to make; it must not exist")->required();
  table.option("threads", options->threads, "CPU threads; the bytes do not depend on it [physical cores]")
      ->type_name("N");
  table.flag("quiet", options->quiet, "no progress on stderr");
  command->footer(
      "Weights are nearly normal, deviation 0.02, and the same for a seed whatever --shard-size. The folder "
      "holds no tokenizer: give `run` --prompt-ids.");
  command->callback([options] { make_checkpoint_command(*options); });
}

}  // namespace sinkscope
