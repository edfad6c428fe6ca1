#include "hub/selection.h"

#include <fnmatch.h>
#include <sinkscope/error.h>

#include <algorithm>

#include "checkpoint/message.h"

namespace sinkscope {
namespace {

constexpr const char* read_patterns[] = {"*.json",     "*.safetensors", "*.jinja",
                                         "tokenizer*", "vocab.*",       "merges.txt"};
// The same weights once more, in the layout of another program.
constexpr const char* not_read_patterns[] = {"consolidated*.safetensors", "*.fp16.safetensors"};

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

void check_every_pattern_matches(const std::vector<std::string>& patterns,
                                 const std::vector<RemoteFile>& files, const std::string& where) {
  for (const std::string& pattern : patterns) {
    if (std::any_of(files.begin(), files.end(),
                    [&](const RemoteFile& file) { return matches(pattern, file.name); }))
      continue;
    std::vector<std::string> names;
    for (const RemoteFile& file : files) names.push_back(file.name);
    throw Error("--include {} matches no file of {}, which holds {}", in_quotes(pattern), where,
                names.empty() ? "none" : listed(names));
  }
}

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  const std::string whole = pattern.ends_with('/') ? pattern + "*" : pattern;
  return ::fnmatch(whole.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool is_read_by_us(const std::string& name) {
  const auto matches_name = [&](const char* pattern) { return matches(pattern, name); };
  return name.find('/') == std::string::npos &&
         std::any_of(std::begin(read_patterns), std::end(read_patterns), matches_name) &&
         std::none_of(std::begin(not_read_patterns), std::end(not_read_patterns), matches_name);
}

Selection select_files(const std::vector<RemoteFile>& files, const std::vector<std::string>& include,
                       const std::vector<std::string>& exclude, const std::string& where) {
  check_every_pattern_matches(include, files, where);
  Selection selection;
  for (const RemoteFile& file : files) {
    const bool wanted = include.empty() ? is_read_by_us(file.name) : any_matches(include, file.name);
    const bool chosen = wanted && !any_matches(exclude, file.name);
    (chosen ? selection.chosen : selection.left_out).push_back(file);
  }
  if (selection.chosen.empty()) {
    std::vector<std::string> names;
    for (const RemoteFile& file : files) names.push_back(file.name);
    throw Error("no file of {} is to be fetched: it holds {}; --include PATTERN chooses among them", where,
                names.empty() ? "none" : listed(names));
  }
  return selection;
}

}  // namespace sinkscope
