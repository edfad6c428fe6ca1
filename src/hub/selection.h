// Which files of a repository are fetched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hub/repository.h"

namespace sinkscope {

struct Selection {
  std::vector<RemoteFile> chosen;
  std::vector<RemoteFile> left_out;
};

/// Shell patterns (*, ?, [...]); * also matches '/', as in huggingface_hub, and DIR/ stands for DIR/*.
bool matches(const std::string& pattern, const std::string& name);

/// What this program reads: configuration, tokenizer and safetensors files, not in a subfolder.
bool is_read_by_us(const std::string& name);

/// Files that an `include` pattern matches (none given: those that is_read_by_us) and no `exclude` pattern.
/// Throws Error naming an include pattern that matches no file, and when nothing is left to fetch. `where`
/// names the repository.
Selection select_files(const std::vector<RemoteFile>& files, const std::vector<std::string>& include,
                       const std::vector<std::string>& exclude, const std::string& where);

}  // namespace sinkscope
