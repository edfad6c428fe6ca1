#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

TEST(Sha256Test, OfOneFileIsItsOrdinaryChecksum) {
  const TemporaryFolder directory;
  const std::vector<std::filesystem::path> files = {write_text(directory.path() / "a", "abc")};
  // FIPS 180-2, appendix B.1
  EXPECT_EQ(sha256_of_files(files), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, OfSeveralFilesIsThatOfTheirConcatenation) {
  const TemporaryFolder directory;
  const std::vector<std::filesystem::path> parts = {write_text(directory.path() / "1", "a"),
                                                    write_text(directory.path() / "2", ""),
                                                    write_text(directory.path() / "3", "bc")};
  EXPECT_EQ(sha256_of_files(parts), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, FilesLargerThanABlockAreReadWhole) {
  const TemporaryFolder directory;
  const std::vector<std::filesystem::path> files = {
      write_text(directory.path() / "a", std::string(1'000'000, 'a')),
      write_text(directory.path() / "b", std::string(2'000'000, 'a'))};
  const std::vector<std::filesystem::path> whole = {
      write_text(directory.path() / "c", std::string(3'000'000, 'a'))};
  EXPECT_EQ(sha256_of_files(files), sha256_of_files(whole));
  EXPECT_NE(sha256_of_files(files), sha256_of_files(std::span(files).first(1)));
}

TEST(Sha256Test, MissingFilesAndFoldersAreNamed) {
  const TemporaryFolder directory;
  const std::vector<std::filesystem::path> missing = {directory.path() / "none"};
  EXPECT_THAT(error_of([&] { sha256_of_files(missing); }), ::testing::HasSubstr("none"));
  const std::vector<std::filesystem::path> folder = {directory.path()};
  EXPECT_THAT(error_of([&] { sha256_of_files(folder); }), ::testing::HasSubstr("cannot read"));
}

TEST(Sha256, OfATextIsThatOfAFileThatHoldsIt) {
  EXPECT_EQ(sha256_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace sinkscope
