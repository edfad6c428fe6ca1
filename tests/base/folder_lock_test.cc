#include "base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(FolderLock, LetsOneInAtATime) {
  const testing::TemporaryFolder folder;
  {
    const FolderLock first(folder.path());
    EXPECT_THAT([&] { FolderLock second(folder.path()); },
                ThrowsMessage<UsageError>(HasSubstr("another process is writing " + folder.path().string())));
  }
  const FolderLock third(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderLock, NeedsAFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT([&] { FolderLock lock(folder / "none"); },
              ThrowsMessage<Error>(HasSubstr("cannot open the folder")));
}

}  // namespace
}  // namespace sinkscope
