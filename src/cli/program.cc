#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "cli/commands.h"

namespace sinkscope {
namespace {

// One line whatever a library put into its message.
int fail(int status, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "sinkscope: %s\n", message.c_str());
  return status;
}

void add_commands(CLI::App& program) {
  program.require_subcommand(1);
  program.set_version_flag("--version", "sinkscope " SINKSCOPE_VERSION);
  program.get_formatter()->column_width(34);
  add_run_command(program);
  add_eval_command(program);
  add_merge_command(program);
  add_measure_command(program);
  add_compare_command(program);
  add_plot_command(program);
  add_forward_command(program);
  add_score_command(program);
  add_tokenize_command(program);
  add_inspect_command(program);
  add_fetch_command(program);
  add_bench_command(program);
  add_make_checkpoint_command(program);
  add_train_command(program);
  add_train_tokenizer_command(program);
  program.footer("`sinkscope COMMAND --help` lists a command's options. Long options take - or _ alike.");
}

// CLI11 only says that a command is missing.
void refuse_unknown_command(const CLI::App& program, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return;
  std::string names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == arguments.front()) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw UsageError("there is no command '{}'; there are {}", arguments.front(), names);
}

}  // namespace

std::string message_of(const std::exception& error) {
  if (const auto* failed = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: {}", failed->path1().string(), failed->code().message());
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string message = from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                         message.find("can't allocate memory") != std::string::npos;
  if (no_memory) return "out of memory: a smaller model, --batch or --gen-len needs less";
  return from_torch != nullptr ? "libtorch: " + message : message;
}

int run_program(std::vector<std::string> arguments) {
  const c10::InferenceMode no_autograd;
  CLI::App program("Attention sinks in diffusion language models: run, record, intervene.", "sinkscope");
  std::string help = "sinkscope --help";
  try {
    add_commands(program);
    refuse_unknown_command(program, arguments);
    if (!arguments.empty() && !arguments.front().starts_with('-'))
      help = "sinkscope " + arguments.front() + " --help";
    std::reverse(arguments.begin(), arguments.end());  // what CLI11's vector form wants
    program.parse(arguments);
    return std::fflush(stdout) == 0 ? 0 : fail(1, "cannot write to standard output");
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(2, fmt::format("{} (see {})", error.what(), help));
  } catch (const UsageError& error) {
    return fail(2, error.what());
  } catch (const std::exception& error) {
    return fail(1, message_of(error));
  }
}

}  // namespace sinkscope
