#include "base/new_folder.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cstdlib>
#include <fstream>

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

class NewFolderTest : public testing::Test {
 protected:
  NewFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "sinkscope-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~NewFolderTest() override { fs::remove_all(root_); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(root_)) found.push_back(entry.path().filename());
    return found;
  }
  fs::path root_;
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
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name) + " exists already"));
    }
  NewFolder folder(root_ / "late");
  fs::create_directory(root_ / "late");
  EXPECT_THROW(folder.finish(), Error);
}

}  // namespace
}  // namespace sinkscope
