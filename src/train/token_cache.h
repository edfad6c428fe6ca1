// The training texts as token ids, made once and mapped from a file: training reads what it needs of it,
// however much there is.
#pragma once

#include <sinkscope/chat_template.h>
#include <sinkscope/tokenizer.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace sinkscope {

/// How texts become ids: [bos] text eos, or prompt through the template, answer, eos.
struct TextEncoder {
  const Tokenizer& tokenizer;
  std::optional<ChatTemplate> prompts;  // none: [bos] prompt, a newline, then the answer
  std::optional<std::int32_t> bos;
  std::int32_t eos = 0;
};

/// One text.
struct TokenDocument {
  std::span<const std::int32_t> ids;
  std::int64_t prompt_length = 0;  // ids of the prompt; 0 for a text without one
};

/// Documents one behind the other. The file:
///
///     "SINKTOK1", u64 documents D, u64 tokens N, u64 key, u64 begins [D + 1], i32 prompt lengths [D], i32
///     ids [N]
///
/// little-endian, begins in tokens.
class TokenCache {
 public:
  /// Maps the file. Throws Error naming it when it is none, is cut short, or its numbers do not fit together.
  explicit TokenCache(const std::filesystem::path& path);

  std::int64_t documents() const { return static_cast<std::int64_t>(prompt_lengths_.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  TokenDocument document(std::int64_t number) const;
  /// All ids.
  std::span<const std::int32_t> ids() const { return ids_; }
  /// Where the document begins in ids().
  std::int64_t begin_of(std::int64_t document) const {
    return static_cast<std::int64_t>(begins_[static_cast<std::size_t>(document)]);
  }
  /// What the cache was made from; see token_cache_key.
  std::uint64_t key() const { return key_; }

 private:
  MappedFile file_;
  std::uint64_t key_ = 0;
  std::span<const std::uint64_t> begins_;
  std::span<const std::int32_t> prompt_lengths_;
  std::span<const std::int32_t> ids_;
};

/// Changes with the tokenizer's files, the template and the names, sizes and times of the texts' files.
std::uint64_t token_cache_key(const std::vector<std::filesystem::path>& files,
                              const std::filesystem::path& tokenizer_folder);

/// Writes the cache of these files, whole or not at all. `progress` hears the share read. Throws Error for
/// texts that are wrong (see training_text.h) and for no texts at all.
void write_token_cache(const std::vector<std::filesystem::path>& files, const TextEncoder& encoder,
                       std::uint64_t key, const std::filesystem::path& cache,
                       const std::function<void(double)>& progress);

/// The ids of one text.
std::vector<std::int32_t> encode_document(const TextEncoder& encoder,
                                          const std::optional<std::string>& prompt, const std::string& text,
                                          std::int64_t& prompt_length);

}  // namespace sinkscope
