// `sinkscope fetch`: a model from the Hugging Face hub into the local cache.
#include "hub/fetch.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "eval/grid.h"
#include "hub/dataset.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int most_parallel = 32;
constexpr int most_retries = 1000;
constexpr int longest_timeout = 86400;
constexpr std::size_t most_names = 5;

struct FetchCommand {
  std::string id;
  std::string datasets;
  std::string data_dir = "data";
  FetchOptions options;
  bool quiet = false;
  bool json = false;
};

// Powers of 1000, as the hub counts.
std::string bytes_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value * 1e-3);
  return value < 1e9 ? fmt::format("{:.1f} MB", value * 1e-6) : fmt::format("{:.2f} GB", value * 1e-9);
}

std::uint64_t total_bytes(const std::vector<RemoteFile>& files) {
  std::uint64_t total = 0;
  for (const RemoteFile& file : files) total += file.size;
  return total;
}

// "3 files, 1.2 GB"
std::string files_text(const std::vector<RemoteFile>& files) {
  return fmt::format("{} file{}, {}", files.size(), files.size() == 1 ? "" : "s",
                     bytes_text(total_bytes(files)));
}

// The names of the largest.
std::string names_text(std::vector<RemoteFile> files) {
  std::stable_sort(files.begin(), files.end(),
                   [](const RemoteFile& a, const RemoteFile& b) { return a.size > b.size; });
  std::string text;
  for (std::size_t i = 0; i < files.size() && i < most_names; ++i)
    text += (i == 0 ? "" : ", ") + files[i].name;
  return files.size() > most_names ? fmt::format("{} and {} more", text, files.size() - most_names) : text;
}

// stderr while a fetch runs: lines and the bar do not mix.
class Screen {
 public:
  explicit Screen(bool quiet) : quiet_(quiet) {}

  void line(const std::string& text) {
    if (quiet_) return;
    finish();
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  /// From here on time counts.
  void start(std::uint64_t bytes) {
    all_ = bytes;
    bar_.emplace("fetching", quiet_);
  }

  void show(const FetchProgress& progress) {
    // Of the first moment no speed can be told.
    if (!bar_ || all_ == 0 || bar_->elapsed() < 1) return;
    const auto bytes = static_cast<double>(progress.bytes);
    bar_->show(bytes / static_cast<double>(all_),
               fmt::format("{} of {}, {}/s{}", bytes_text(progress.bytes), bytes_text(all_),
                           bytes_text(static_cast<std::uint64_t>(bytes / bar_->elapsed())),
                           progress.checking.empty() ? "" : ", checking " + progress.checking));
  }

  void finish() {
    if (bar_) bar_->finish();
  }
  double elapsed() const { return bar_ ? bar_->elapsed() : 0; }

 private:
  bool quiet_;
  std::uint64_t all_ = 0;
  std::optional<Progress> bar_;
};

void show_left_out(Screen& screen, const std::vector<RemoteFile>& left_out) {
  if (!left_out.empty())
    screen.line(
        fmt::format("left out: {} ({}); --include chooses", files_text(left_out), names_text(left_out)));
}

void show_plan(Screen& screen, const FetchPlan& plan, const FetchOptions& options) {
  screen.line(fmt::format(
      "{} at {}: {}, {} to fetch{}", options.id.text(), plan.commit, files_text(plan.chosen),
      bytes_text(plan.bytes_to_fetch),
      plan.bytes_resumed > 0 ? fmt::format(" ({} came before)", bytes_text(plan.bytes_resumed)) : ""));
  show_left_out(screen, plan.left_out);
  const bool weights = std::any_of(plan.chosen.begin(), plan.chosen.end(), [](const RemoteFile& file) {
    return file.name.ends_with(".safetensors");
  });
  if (!weights && options.include.empty())
    screen.line("note: there are no safetensors files, the only weights that this program reads");
}

FetchReport fetch(const FetchCommand& command, const HubSettings& settings) {
  Screen screen(command.quiet);
  const FetchReport report =
      fetch_repository(command.options, settings,
                       {.planned =
                            [&](const FetchPlan& plan) {
                              show_plan(screen, plan, command.options);
                              screen.start(plan.bytes_to_fetch);
                            },
                        .progress = [&](const FetchProgress& progress) { screen.show(progress); },
                        .note = [&](const std::string& line) { screen.line(line); }});
  screen.finish();
  if (settings.offline)
    screen.line("HF_HUB_OFFLINE: the hub was not asked");
  else
    screen.line(
        fmt::format("fetched {} in {}", bytes_text(report.received), duration_text(screen.elapsed())));
  return report;
}

OrderedJson to_json(const FetchReport& report, const HubId& id) {
  OrderedJson files = OrderedJson::array();
  OrderedJson left_out = OrderedJson::array();
  for (const FetchedFile& fetched : report.files)
    files.push_back({{"name", fetched.file.name},
                     {"size", fetched.file.size},
                     {"blob", fetched.file.checksum},
                     {"downloaded", fetched.downloaded}});
  for (const RemoteFile& file : report.left_out)
    left_out.push_back({{"name", file.name}, {"size", file.size}});
  return {{"repository", id.repository()},     {"revision", id.revision},
          {"commit", report.commit},           {"directory", report.snapshot.string()},
          {"received_bytes", report.received}, {"files", std::move(files)},
          {"left_out", std::move(left_out)}};
}

void check_range(const char* name, int value, int least, int most) {
  if (value < least || value > most)
    throw UsageError("--{} is {}; it must be from {} to {}", name, value, least, most);
}

void check_options(FetchCommand& command) {
  if (command.id.empty() == command.datasets.empty())
    throw UsageError("give a model's ID, or --dataset and names of {}", fmt::join(dataset_names(), ", "));
  const auto id = command.id.empty() ? std::optional<HubId>(HubId{}) : parse_hub_id(command.id);
  if (!id)
    throw UsageError("{} is no Hugging Face id; ORG/NAME or ORG/NAME@REVISION would be right, like {}",
                     json_line(Json(command.id)), "GSAI-ML/LLaDA-8B-Instruct");
  command.options.id = *id;
  check_range("parallel", command.options.parallel, 1, most_parallel);
  check_range("retries", command.options.retry.retries, 0, most_retries);
  check_range("timeout", command.options.timeout, 1, longest_timeout);
  const double wait = command.options.retry.first_wait;
  if (!(wait >= 0 && wait <= longest_backoff))
    throw UsageError("--retry-wait is {}; it must be from 0 to {} seconds", wait, longest_backoff);
}

void fetch_datasets(const FetchCommand& command) {
  Screen screen(command.quiet);
  DatasetOptions options{command.options.timeout, command.options.retry,
                         [&](const std::string& line) { screen.line(line); }};
  OrderedJson files = OrderedJson::array();
  for (const std::string& name : parse_names(command.datasets, "--dataset"))
    for (const DatasetFile& file : dataset_files(name)) {
      const bool fetched = fetch_dataset_file(file, command.data_dir, options);
      screen.line(fmt::format("{}: {}{}", file.name, fetched ? "fetched" : "there already",
                              file.sha256.empty() ? " (no checksum is pinned)" : ", checksum right"));
      files.push_back(
          {{"name", file.name}, {"url", file.url}, {"sha256", file.sha256}, {"downloaded", fetched}});
    }
  const std::string folder = std::filesystem::absolute(command.data_dir).lexically_normal().string();
  if (command.json)
    fmt::print("{}\n", json_line(OrderedJson{{"directory", folder}, {"files", std::move(files)}}));
  else
    fmt::print("{}\n", folder);
}

void fetch_command(FetchCommand& command) {
  check_options(command);
  if (!command.datasets.empty()) return fetch_datasets(command);
  const FetchReport report = fetch(command, hub_settings());
  if (command.json)
    fmt::print("{}\n", json_line(to_json(report, command.options.id)));
  else
    fmt::print("{}\n", report.snapshot.string());
}

}  // namespace

void add_fetch_command(CLI::App& program) {
  auto command = std::make_shared<FetchCommand>();
  FetchOptions& options = command->options;
  CLI::App* app = program.add_subcommand(
      "fetch", "Download a model from the Hugging Face hub into its cache, or benchmark data");
  OptionTable table(*app);
  app->add_option("ID", command->id, "ORG/NAME, ORG/NAME@REVISION, LLaDA, Dream or MMaDA");
  table
      .option("dataset", command->datasets,
              fmt::format("benchmark data instead, comma-separated: {}", fmt::join(dataset_names(), ", ")))
      ->type_name("NAMES");
  table.option("data-dir", command->data_dir, "with --dataset: the folder they go to");
  table
      .repeatable("include", options.include,
                  "only files that match, like \"*.safetensors\" [what this program reads]")
      ->type_name("PATTERN");
  table.repeatable("exclude", options.exclude, "not these files")->type_name("PATTERN");
  table.option("parallel", options.parallel, "files at a time")->type_name("N");
  table.option("retries", options.retry.retries, "failures in a row put up with, for each file")
      ->type_name("N");
  table.option("retry-wait", options.retry.first_wait, "before the first of them; doubles each time")
      ->type_name("SECONDS");
  table.option("timeout", options.timeout, "without a connection or a byte until a try has failed")
      ->type_name("SECONDS");
  table.flag("quiet", command->quiet, "no progress on stderr");
  table.flag("json", command->json, "one JSON object instead of the snapshot's folder");
  app->footer(
      "Prints the folder of the snapshot. Variables: HF_ENDPOINT, HF_TOKEN, HF_HUB_CACHE, HF_HOME, "
      "HF_HUB_OFFLINE. An interrupted fetch goes on where it was.");
  app->callback([command] { fetch_command(*command); });
}

}  // namespace sinkscope
