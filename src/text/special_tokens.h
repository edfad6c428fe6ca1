// Which texts a checkpoint's tokenizer calls its begin, end, mask, ... token.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace sinkscope {

/// "bos_token" -> "<|startoftext|>", of those there are: from tokenizer_config.json, and what only older
/// checkpoints' special_tokens_map.json states. A token is a text or {"content": text}; null is none. Throws
/// Error naming the file and the member that is neither. An empty folder name states none.
std::map<std::string, std::string> special_tokens_of(const std::filesystem::path& model_dir);

}  // namespace sinkscope
