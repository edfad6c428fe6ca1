// The prompts of a run and where they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct Prompt {
  std::string id;
  std::string text;                              // before the template; empty when ids are given
  std::optional<std::string> reference;          // the known answer
  std::optional<std::vector<std::int32_t>> ids;  // taken as they are
};

/// Long names without `--`, as on the command line.
struct PromptOptions {
  std::vector<std::string> prompt;
  std::string prompts;  // a file: JSONL with `prompt` or `question` and `answer`, or plain text lines
  std::string dataset;  // gsm8k, humaneval, mbpp, math500
  std::string data_dir;
  std::vector<std::string> prompt_ids;  // "1,2,3"
  std::optional<std::int64_t> num_samples;
};

/// All of them in that order, cut to num_samples. Throws UsageError when there is none, Error naming file and
/// line.
std::vector<Prompt> read_prompts(const PromptOptions& options);

/// "1,2,3" -> ids; "" -> none. `option` names the source in the UsageError.
std::vector<std::int32_t> parse_ids(std::string_view text, std::string_view option);

}  // namespace sinkscope
