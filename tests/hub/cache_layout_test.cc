#include "hub/cache_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include "base/files.h"
#include "hub/checksum.h"
#include "hub/file_lock.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::TemporaryFolder;
using testing::write_file;

const std::string commit(40, 'c');

TEST(CacheLayout, FoldersAreThoseOfHuggingfaceHub) {
  const CacheLayout layout = cache_layout("/cache", {"a", "b", "main"});
  EXPECT_EQ(layout.blob("e"), "/cache/models--a--b/blobs/e");
  EXPECT_EQ(layout.incomplete("e"), "/cache/models--a--b/blobs/e.incomplete");
  EXPECT_EQ(layout.snapshot("c"), "/cache/models--a--b/snapshots/c");
  EXPECT_EQ(layout.lock("e"), "/cache/.locks/models--a--b/e.lock");
}

TEST(CacheLayout, LinksAreRelativeAndReplaceWhatIsThere) {
  const TemporaryFolder folder;
  const CacheLayout layout = cache_layout(folder.path(), {"a", "b", "main"});
  link_file(layout, commit, "config.json", "e1");
  link_file(layout, commit, "sub/deep/x", "e2");
  const fs::path snapshot = layout.snapshot(commit);
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json"), "../../blobs/e1");
  EXPECT_EQ(fs::read_symlink(snapshot / "sub/deep/x"), "../../../../blobs/e2");
  make_folders(layout.blob("e2").parent_path());
  write_file(layout.blob("e2"), "content");
  EXPECT_EQ(content_of(snapshot / "sub/deep/x"), "content");
  link_file(layout, commit, "config.json", "e1");
  link_file(layout, commit, "config.json", "e3");
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json"), "../../blobs/e3");
  write_file(snapshot / "mine", "a file, not a link");
  link_file(layout, commit, "mine", "e2");
  EXPECT_EQ(content_of(snapshot / "mine"), "content");
  EXPECT_THROW(link_file(layout, commit, "sub", "e2"), Error);  // a folder is there
}

TEST(CacheLayout, AReferenceIsTheCommitAndNothingElse) {
  const TemporaryFolder folder;
  const CacheLayout layout = cache_layout(folder.path(), {"a", "b", "main"});
  write_reference(layout, "main", std::string(40, 'a'));
  write_reference(layout, "main", commit);
  write_reference(layout, "refs/pr/1", commit);
  EXPECT_EQ(content_of(layout.repository / "refs/main"), commit);
  EXPECT_EQ(content_of(layout.repository / "refs/refs/pr/1"), commit);
}

TEST(FileLock, OnlyOneHolds) {
  const TemporaryFolder folder;
  {
    FileLock first(folder / "deep/x.lock");
    FileLock second(folder / "deep/x.lock");
    EXPECT_TRUE(first.try_lock());
    EXPECT_FALSE(second.try_lock());
  }
  FileLock third(folder / "deep/x.lock");
  EXPECT_TRUE(third.try_lock());
}

TEST(FileLock, AFileThatWasRemovedIsMadeAgain) {
  const TemporaryFolder folder;
  FileLock first(folder / "x.lock");
  fs::remove(folder / "x.lock");
  FileLock second(folder / "x.lock");
  EXPECT_TRUE(second.try_lock());
  EXPECT_FALSE(first.try_lock());
}

TEST(Checksum, IsGitsOrSha256) {
  const TemporaryFolder folder;
  write_file(folder / "f", "hello\n");
  // git hash-object f; sha256sum f
  EXPECT_EQ(checksum_of_file(folder / "f", ChecksumKind::git_sha1),
            "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(checksum_of_file(folder / "f", ChecksumKind::sha256),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  write_file(folder / "empty", "");
  EXPECT_EQ(checksum_of_file(folder / "empty", ChecksumKind::git_sha1),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_THROW(checksum_of_file(folder / "none", ChecksumKind::git_sha1), Error);
}

}  // namespace
}  // namespace sinkscope
