// What every command that generates does before it does: the model found and checked, prompts made ready, the
// run described.
#pragma once

#include <sinkscope/checkpoint.h>
#include <sinkscope/memory.h>
#include <sinkscope/run_directory.h>
#include <sinkscope/tokenizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/generation.h"
#include "cli/run_options.h"

namespace sinkscope {

/// A model that is found and fits the options, its weights not loaded yet.
struct ChosenModel {
  Placement placement;
  std::shared_ptr<const Checkpoint> checkpoint;
  ComputeDtype dtype;
  std::optional<Tokenizer> tokenizer;  // none where the folder has none and nothing needs one
  SpecialIds ids;

  const ModelConfig& config() const { return checkpoint->config(); }
};

/// Throws UsageError for options that the model or the machine does not have, and Error for a model that is
/// not there or not whole. `needs_tokenizer`: prompts are text.
ChosenModel choose_model(const RunOptions& options, bool needs_tokenizer);

/// How a prompt becomes what the model gets: through the chat template, or, with --raw, as it is.
class PromptWrapping {
 public:
  /// Throws UsageError or Error where the template cannot be had.
  PromptWrapping(const TemplateOptions& options, const ChosenModel& model);

  bool is_chat() const { return chat_.has_value(); }
  std::string text(const std::string& prompt) const;
  /// Of such a text. A template has written the begin token already, where the format has one.
  std::vector<std::int32_t> encode(const std::string& text) const;

 private:
  const TemplateOptions& options_;
  const Tokenizer& tokenizer_;
  std::optional<ChatTemplate> chat_;
};

/// What names one place now names it from everywhere.
std::string absolute_if_there(const std::string& path);

/// A line on stderr where the longest sample is longer than what the model was made for.
void note_long_samples(const std::vector<PreparedPrompt>& prompts, const ModelConfig& config,
                       const RunOptions& options);

/// Throws UsageError naming the prompt or the option that the model cannot take.
void check_against_model(const std::vector<PreparedPrompt>& prompts, const ModelConfig& config,
                         const RunOptions& options);

/// Throws Error where the longest sample needs more memory than there is; the CPU only.
void check_run_memory(const std::vector<PreparedPrompt>& prompts, const RunOptions& options,
                      const ChosenModel& model);

/// run.json `sink`.
RunSink describe_sinks(const InterventionOptions& sinks);

/// run.json; `table` is the one that declared `options`.
RunInfo describe_run(const ChosenModel& model, const OptionTable& table, const RunOptions& options);

/// Throws Error where a run that goes on began with another model or other prompts.
void check_resumed(const RunInfo& now, const RunDirectory& run, const std::vector<PreparedPrompt>& prompts);

/// Which part of the samples this process does: what --shard says, else what its launcher says; a line on
/// stderr tells. Throws UsageError where a shard has no --run-dir.
void share_work(RunOptions& options);

/// Throws UsageError naming the first option given but `free`: it cannot be given with `what`.
void refuse_beside(const CLI::App& command, const std::vector<std::string>& free, const std::string& what);

/// The same beside --resume: those in `file` count.
void refuse_beside_resume(const CLI::App& command, const std::vector<std::string>& free, const char* file);

/// Gives the options of `table`, and the model's name, the values that a file recorded. Throws Error naming
/// `where` and what it cannot read.
void parse_recorded(CLI::App& parser, const OptionTable& table, nlohmann::ordered_json recorded,
                    const std::string& where, std::string& model);

}  // namespace sinkscope
