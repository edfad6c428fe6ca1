#include "base/new_folder.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

class NewFolderTest : public ::testing::Test {
 protected:
  std::vector<std::string> names() const { return testing::names_in(root_); }
  const testing::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(NewFolderTest, AppearsWithItsContentWhenItIsFinished) {
  NewFolder folder(root_ / "new");
  std::ofstream(folder.path() / "file") << "content";
  EXPECT_FALSE(fs::exists(root_ / "new"));
  folder.finish();
  EXPECT_TRUE(fs::exists(root_ / "new/file"));
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(NewFolderTest, LeavesNothingWhenItIsNotFinished) {
  {
    const NewFolder folder(root_ / "new");
    std::ofstream(folder.path() / "file") << "content";
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(NewFolderTest, MakesMissingParentsAndTakesATrailingSlash) {
  NewFolder folder(root_ / "a/b/new/");
  folder.finish();
  EXPECT_TRUE(fs::is_directory(root_ / "a/b/new"));
}

TEST_F(NewFolderTest, RefusesAPlaceThatIsTaken) {
  fs::create_directory(root_ / "folder");
  std::ofstream(root_ / "file") << "";
  fs::create_symlink("nowhere", root_ / "link");
  for (const char* name : {"folder", "file", "link"}) try {
      const NewFolder folder(root_ / name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(std::string(name) + " exists already"));
    }
  NewFolder folder(root_ / "late");
  fs::create_directory(root_ / "late");
  EXPECT_THROW(folder.finish(), Error);
}

}  // namespace
}  // namespace sinkscope
