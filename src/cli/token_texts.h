// Texts of token ids, from the tokenizer of each run's model where it is on this machine.
#pragma once

#include <sinkscope/run_directory.h>
#include <sinkscope/tokenizer.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sinkscope {

class TokenTexts {
 public:
  /// `tokenizer`: MODEL or folder of `--tokenizer`, loaded now; empty: each run's own model, loaded when it
  /// is first asked for. Throws Error where --tokenizer cannot be loaded.
  TokenTexts(std::string tokenizer, bool quiet);

  /// A printable name; none where the tokenizer is not there, which is said once on stderr.
  std::optional<std::string> text(const RunInfo& run, std::int32_t id);

 private:
  const std::optional<Tokenizer>& tokenizer_of(const RunInfo& run);

  std::string tokenizer_;
  bool quiet_;
  std::map<std::string, std::optional<Tokenizer>> loaded_;
};

}  // namespace sinkscope
