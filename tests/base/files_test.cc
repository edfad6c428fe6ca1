#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MakeFolders, MakesThoseThatAreMissing) {
  const testing::TemporaryFolder folder;
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/b/c");
  make_folders("");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
}

TEST(MakeFolders, NamesTheFolderThatCannotBe) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  const std::filesystem::path below = folder / "file/below";
  EXPECT_THAT([&] { make_folders(below); }, ThrowsMessage<Error>(HasSubstr(below.string())));
}

}  // namespace
}  // namespace sinkscope
