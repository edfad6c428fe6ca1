// The commands. Each adds its subcommand, with options, help and action, to the program.
#pragma once

#include <CLI/CLI.hpp>

namespace sinkscope {

void add_run_command(CLI::App& program);
void add_forward_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_inspect_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_make_checkpoint_command(CLI::App& program);

/// The program: arguments without its own name. Returns the exit status: 0, 1 for a failure, 2 for wrong use.
int run_program(std::vector<std::string> arguments);

}  // namespace sinkscope
