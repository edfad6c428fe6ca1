// The commands. Each adds its subcommand, with options, help and action, to the program.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

namespace sinkscope {

void add_run_command(CLI::App& program);
void add_eval_command(CLI::App& program);
void add_merge_command(CLI::App& program);
void add_measure_command(CLI::App& program);
void add_compare_command(CLI::App& program);
void add_forward_command(CLI::App& program);
void add_score_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_inspect_command(CLI::App& program);
void add_fetch_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_make_checkpoint_command(CLI::App& program);
void add_train_command(CLI::App& program);
void add_train_tokenizer_command(CLI::App& program);

/// What an exception says, without the stack that libtorch appends; "out of memory ..." where that was it.
std::string message_of(const std::exception& error);

/// The program: arguments without its own name. Returns the exit status: 0, 1 for a failure, 2 for wrong use.
int run_program(std::vector<std::string> arguments);

}  // namespace sinkscope
