// Reading run directories, of this program or of another that writes the same files.
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>

#include "base/files.h"
#include "base/json.h"
#include "record/run_files.h"
#include "record/run_json.h"

namespace sinkscope {

namespace fs = std::filesystem;

RunInfo read_run_info(const fs::path& folder) {
  const fs::path file = folder / run_json_name;
  if (!fs::exists(file)) throw Error("{} is no run directory: it has no run.json", folder.string());
  return parse_run_json(read_file(file), file.string());
}

std::vector<SampleRecord> read_samples(const fs::path& folder) {
  return read_sample_lines(folder / samples_name).records;
}

SampleLines read_sample_lines(const fs::path& file) {
  const std::string text = read_file(file);
  SampleLines samples;
  std::set<std::int64_t> seen;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t line_break = text.find('\n', begin);
    if (line_break == std::string::npos) return samples;
    const std::string where = fmt::format("{} line {}", file.string(), number);
    const std::size_t next = line_break + 1;
    const std::string_view line = std::string_view(text).substr(begin, line_break - begin);
    SampleRecord record;
    try {
      record = parse_sample_line(line, where);
    } catch (const Error&) {
      if (next < text.size() || Json::accept(line)) throw;
      return samples;
    }
    if (!seen.insert(record.index).second)
      throw Error("{}: index {} stands on an earlier line already", where, record.index);
    samples.records.push_back(std::move(record));
    samples.lines.push_back(text.substr(begin, next - begin));
    samples.sound_bytes = begin = next;
  }
  return samples;
}

}  // namespace sinkscope
