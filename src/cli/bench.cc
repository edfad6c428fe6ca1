// `sinkscope bench`: speed of forward and generation against the machine's own ceiling.
#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "cli/speed.h"
#include "model/flops.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct BenchOptions {
  std::string model;
  std::string positions = "512";
  std::int64_t repeat = 5;
  std::int64_t seed = 0;
  bool json = false;
  bool verbose = false;
  ModelOptions common;
};

// What the reports of all lengths have in common.
struct BenchModel {
  const BenchOptions& options;
  const Transformer& transformer;
  int threads = 1;
  double load_seconds = 0;
};

constexpr std::int64_t fewest_positions = 2;  // one of them masked
constexpr std::int64_t most_positions = std::int64_t{1} << 20;

std::vector<std::int64_t> parse_positions(const std::string& text) {
  std::vector<std::int64_t> lengths;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t length = 0;
    const auto [next, error] = std::from_chars(at, end, length);
    const bool ends_well = next == end || (*next == ',' && next + 1 != end);
    if (error != std::errc() || !ends_well || length < fewest_positions || length > most_positions)
      throw UsageError("--positions \"{}\" should be one or more lengths from {} to {}, like 512,1024",
                       text.substr(0, 60), fewest_positions, most_positions);
    lengths.push_back(length);
    if (next == end) return lengths;
    at = next + 1;
  }
}

std::string_view short_name(ProductType type) {
  return type == ProductType::bf16 ? "bf16" : type == ProductType::int8 ? "int8" : "f32";
}

OrderedJson timing_json(const SpeedReport& report, Work work) {
  return {{"seconds", report.seconds[static_cast<std::size_t>(work)]},
          {"flops", report.flops[static_cast<std::size_t>(work)]},
          {"gflops", report.gflops(work)},
          {"share_of_ceiling", report.share_of_ceiling(work)},
          {"tokens_per_second", report.tokens_per_second(work)},
          {"rounds", report.rounds[static_cast<std::size_t>(work)]}};
}

OrderedJson to_json(const BenchModel& bench, const SpeedReport& report) {
  const RunMachine machine = describe_machine(bench.threads, bench.transformer.device().str());
  OrderedJson json{{"model", bench.options.model},
                   {"dtype", dtype_option(bench.transformer.dtype())},
                   {"weights", bench.options.common.weights},
                   {"positions", report.positions},
                   {"masked_positions", report.masked},
                   {"threads", bench.threads},
                   {"repeat", bench.options.repeat},
                   {"seed", bench.options.seed},
                   {"ceiling_gflops", report.gflops(Work::ceiling)},
                   {"ceiling_seconds", report.seconds[static_cast<std::size_t>(Work::ceiling)]},
                   {"ceiling_flops", report.flops[static_cast<std::size_t>(Work::ceiling)]},
                   {"ceiling_rounds", report.rounds[static_cast<std::size_t>(Work::ceiling)]},
                   {"ceiling_dtype", short_name(report.ceiling_type)},
                   {"plain", timing_json(report, Work::plain)},
                   {"columns", timing_json(report, Work::columns)},
                   {"full", timing_json(report, Work::full)},
                   {"columns_overhead", report.overhead(Work::columns)},
                   {"full_overhead", report.overhead(Work::full)},
                   {"step_seconds", report.seconds[static_cast<std::size_t>(Work::step)]},
                   {"step", timing_json(report, Work::step)},
                   {"load_seconds", bench.load_seconds},
                   {"peak_resident_mb", report.peak_resident_mb},
                   {"implementation", bench.transformer.implementation()},
                   {"cpu", machine.cpu},
                   {"instruction_sets", machine.instruction_sets}};
  if (report.measured(Work::read)) {
    json["weight_bytes"] = report.weight_bytes;
    json["read_seconds"] = report.seconds[static_cast<std::size_t>(Work::read)];
    json["share_of_bandwidth"] = report.share_of_bandwidth();
  }
  return json;
}

std::string table_row(const SpeedReport& report, Work work) {
  const double seconds = report.seconds[static_cast<std::size_t>(work)];
  if (work == Work::read)
    return fmt::format("{:<8} {:>10.4f} {:>10.1f} GB/s of memory", name_of(work), seconds,
                       static_cast<double>(report.weight_bytes) * 1e-9 / seconds);
  std::string row = fmt::format("{:<8} {:>10.4f} {:>10.1f}", name_of(work), seconds, report.gflops(work));
  if (work == Work::ceiling) return row;
  row += fmt::format(" {:>10.1f} % {:>10.1f}", 100 * report.share_of_ceiling(work),
                     report.tokens_per_second(work));
  if (work == Work::step && report.measured(Work::read))
    row += fmt::format("   {:.1f} % of what memory allows", 100 * report.share_of_bandwidth());
  if (work == Work::columns || work == Work::full)
    row += fmt::format(" {:>+9.1f} %", 100 * report.overhead(work));
  return row;
}

void print_table(const BenchModel& bench, const SpeedReport& report) {
  fmt::print("{}: {}{}, {} positions ({} masked), {} threads, medians of {} rounds\n", bench.options.model,
             dtype_option(bench.transformer.dtype()),
             report.ceiling_type == ProductType::int8 ? ", int8 weights" : "", report.positions,
             report.masked, bench.threads, bench.options.repeat);
  fmt::print("{:<8} {:>10} {:>10} {:>12} {:>10} {:>11}\n", "", "seconds", "GFLOP/s", "of ceiling", "tokens/s",
             "overhead");
  for (const Work work : all_work)
    if (report.measured(work)) fmt::print("{}\n", table_row(report, work));
  fmt::print("{}; loaded in {:.1f} s, peak resident {:.0f} MB\n", bench.transformer.implementation(),
             bench.load_seconds, report.peak_resident_mb);
  if (report.ceiling_type == ProductType::f32 && bench.transformer.dtype() == at::kBFloat16)
    fmt::print("the ceiling is that of float32 products: this processor has none of bfloat16\n");
}

SpeedReport measure(const BenchModel& bench, std::int64_t positions) {
  const BenchOptions& options = bench.options;
  Progress bar("measuring", options.common.quiet);
  SpeedOptions speed{
      .positions = positions, .rounds = options.repeat, .seed = static_cast<std::uint64_t>(options.seed)};
  speed.progress = [&](double share, std::int64_t round, Work work, double seconds) {
    const std::string stage =
        round == 0 ? std::string("warm-up") : fmt::format("round {} of {}", round, options.repeat);
    if (options.verbose) {
      bar.finish();
      note(false, fmt::format("{} positions, {}: {} {:.4f} s", positions, stage, name_of(work), seconds));
    }
    bar.show(share, fmt::format("{} positions, {}", positions, stage));
  };
  return measure_speed(bench.transformer, speed);
}

void print_formula(const ModelConfig& config, std::int64_t positions) {
  note(false,
       fmt::format("FLOPs of plain, columns and full at {} positions:\n{}FLOPs of step:\n{}the ceiling does "
                   "without the attention",
                   positions, describe_flops(config, positions, positions),
                   describe_flops(config, positions, positions / 2)));
}

void bench_command(const BenchOptions& options) {
  const std::vector<std::int64_t> lengths = parse_positions(options.positions);
  if (options.repeat < 1 || options.repeat > 1000)
    throw UsageError("--repeat is {}; it must be from 1 to 1000", options.repeat);
  if (options.seed < 0) throw UsageError("--seed is {}; it must be at least 0", options.seed);
  const Placement placement = place(options.common);
  if (!placement.device.is_cpu()) throw UsageError("bench measures the CPU; leave --device at cpu");
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(locate_model(options.model)));
  const ModelConfig& config = checkpoint->config();
  const ComputeDtype dtype = choose_dtype(options.common, config, placement.device);
  if (!dtype.note.empty()) note(options.common.quiet, dtype.note);
  const Progress clock("", /*quiet=*/true);
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  const BenchModel bench{options, model, placement.threads, clock.elapsed()};
  for (const std::int64_t positions : lengths) {
    if (options.verbose) print_formula(config, positions);
    const SpeedReport report = measure(bench, positions);
    if (options.json)
      fmt::print("{}\n", json_line(to_json(bench, report)));
    else
      print_table(bench, report);
    std::fflush(stdout);  // a length may take minutes
  }
}

}  // namespace

void add_bench_command(CLI::App& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = program.add_subcommand("bench", "Speed against the machine's own ceiling");
  OptionTable table(*command);
  command->add_option("MODEL", options->model, "directory, built-in name or Hugging Face id")->required();
  table.option("positions", options->positions, "lengths of the sequence: S[,S...]")->type_name("S[,S...]");
  table.option("repeat", options->repeat, "rounds; medians over them are reported");
  table.option("seed", options->seed, "of the ids");
  table.flag("json", options->json, "one JSON object a length");
  table.flag("verbose", options->verbose, "every round's seconds and the count of FLOPs, on stderr");
  declare_model_options(table, options->common);
  command->footer(
      "A round runs, one after the other: ceiling, the model's matrix products alone; plain, columns and "
      "full, "
      "a forward pass with that --capture and the head on every position; step, one denoising step of `run` "
      "with half of the positions masked. tokens/s are positions passed through the model. Autoregressive "
      "models: "
      "read, the bytes of all weights from memory, once; step, the next token behind all positions but one.");
  command->callback([options] { bench_command(*options); });
}

}  // namespace sinkscope
