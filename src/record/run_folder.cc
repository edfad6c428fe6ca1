// Names and places of run directories and what is in them.
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "record/run_files.h"

namespace sinkscope {

namespace fs = std::filesystem;

std::string run_folder_name(const RunName& name, std::time_t now) {
  std::tm local{};
  ::localtime_r(&now, &local);
  std::string text = fmt::format("T{:02}{:02}_{:02}{:02}{:02}", local.tm_mon + 1, local.tm_mday,
                                 local.tm_hour, local.tm_min, local.tm_sec);
  if (name.steps) text += fmt::format("-S{}", *name.steps);
  text += fmt::format("-L{}", name.gen_len);
  if (name.block_len) text += fmt::format("-B{}", *name.block_len);
  return text;
}

fs::path make_run_folder(const fs::path& out, const RunName& name, std::time_t now) {
  make_folders(out);
  const fs::path first = out / run_folder_name(name, now);
  fs::path folder = first;
  // mkdir is the test: of several processes one makes the folder, the others see that it is taken.
  for (int suffix = 2; ::mkdir(folder.c_str(), 0755) != 0; ++suffix) {
    if (errno != EEXIST) throw Error("cannot make the folder {}: {}", folder.string(), std::strerror(errno));
    folder = first;
    folder += fmt::format("-{}", suffix);
  }
  return folder;
}

fs::path sample_path(const fs::path& folder, std::int64_t index) {
  return folder / fmt::format("sample_{:05}.npz", index);
}

}  // namespace sinkscope
