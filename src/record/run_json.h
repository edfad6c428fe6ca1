// run.json and the lines of samples.jsonl as text.
#pragma once

#include <sinkscope/run_directory.h>

#include <string>
#include <string_view>

namespace sinkscope {

/// Pretty-printed, with a final line break.
std::string run_json(const RunInfo& info);

/// `where` names the file in errors. Throws Error naming the field at fault.
RunInfo parse_run_json(std::string_view text, const std::string& where);

/// One line with its line break.
std::string sample_line(const SampleRecord& record);

/// A line without its line break. Only `index` is required.
SampleRecord parse_sample_line(std::string_view line, const std::string& where);

}  // namespace sinkscope
