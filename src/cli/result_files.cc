#include "cli/result_files.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"

namespace sinkscope {

namespace fs = std::filesystem;

void check_result_folder(const std::string& out, const char* content) {
  if (!out.empty() && fs::exists(out) && !fs::is_directory(out))
    throw UsageError("--out {} is a file; it names the folder for {}", out, content);
}

void write_results(const std::string& out, const std::string& json_name, const nlohmann::ordered_json& json,
                   const std::vector<CsvTable>& tables) {
  const fs::path folder = out;
  make_folders(folder);
  write_file_atomically(folder / json_name, json_text(json));
  for (const CsvTable& table : tables) write_file_atomically(folder / table.file, table.content);
}

void show_samples(Progress& bar, std::size_t done, std::size_t all) {
  bar.show(static_cast<double>(done) / static_cast<double>(all), fmt::format("sample {} of {}", done, all));
}

}  // namespace sinkscope
