#include "hub/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <string>

namespace sinkscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string commit(40, 'c');
const std::string sha1(40, '1');
const std::string sha256(64, '2');

std::string answer_with(const std::string& siblings) {
  return R"({"id": "a/b", "sha": ")" + commit + R"(", "siblings": [)" + siblings + "]}";
}

std::string small(const std::string& name, const std::string& size = "12") {
  return R"({"rfilename": ")" + name + R"(", "size": )" + size + R"(, "blobId": ")" + sha1 + R"("})";
}

std::string error_in(const std::string& answer) {
  try {
    parse_repository(answer, "the answer");
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error)";
}

TEST(Repository, SmallFilesHaveGitsChecksumLargeOnesSha256) {
  const std::string large = R"({"rfilename": "model.safetensors", "size": 5000, "blobId": ")" + sha1 +
                            R"(", "lfs": {"sha256": ")" + sha256 + R"(", "size": 5000, "pointerSize": 134}})";
  const RemoteRepository repository = parse_repository(answer_with(small("config.json") + "," + large), "x");
  EXPECT_EQ(repository.commit, commit);
  ASSERT_EQ(repository.files.size(), 2U);
  EXPECT_EQ(repository.files[0].name, "config.json");
  EXPECT_EQ(repository.files[0].size, 12U);
  EXPECT_EQ(repository.files[0].kind, ChecksumKind::git_sha1);
  EXPECT_EQ(repository.files[0].checksum, sha1);
  EXPECT_EQ(repository.files[1].size, 5000U);
  EXPECT_EQ(repository.files[1].kind, ChecksumKind::sha256);
  EXPECT_EQ(repository.files[1].checksum, sha256);
  EXPECT_TRUE(parse_repository(answer_with(""), "x").files.empty());
}

TEST(Repository, WhatIsMissingOrOfTheWrongKindIsNamed) {
  EXPECT_THAT(error_in("{"), HasSubstr("the answer is not valid JSON"));
  EXPECT_THAT(error_in("<html>"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in("[]"), HasSubstr("should be an object, not an array"));
  EXPECT_THAT(error_in("{}"), HasSubstr("has no sha"));
  EXPECT_THAT(error_in(R"({"sha": "main", "siblings": []})"),
              AllOf(HasSubstr("40 hexadecimal"), HasSubstr("main")));
  EXPECT_THAT(error_in(R"({"sha": ")" + commit + R"("})"), HasSubstr("has no siblings"));
  EXPECT_THAT(error_in(R"({"sha": ")" + commit + R"(", "siblings": 3})"), HasSubstr("should be an array"));
  EXPECT_THAT(error_in(answer_with("3")), HasSubstr("should be an object"));
  EXPECT_THAT(error_in(answer_with(R"({"rfilename": "a"})")), HasSubstr("a has no blobId"));
  EXPECT_THAT(error_in(answer_with(R"({"rfilename": "a", "blobId": "ABC"})")), HasSubstr("40 hexadecimal"));
  EXPECT_THAT(error_in(answer_with(R"({"rfilename": "a", "lfs": {"sha256": "12", "size": 1}})")),
              HasSubstr("64 hexadecimal"));
  for (const char* size : {"-1", "1.5", "\"1\"", "null", "99999999999999999"})
    EXPECT_THAT(error_in(answer_with(small("a", size))), HasSubstr("no number of bytes")) << size;
}

TEST(Repository, AChecksumHasOneSizeAndANameOneFile) {
  EXPECT_THAT(error_in(answer_with(small("a") + "," + small("a"))), HasSubstr("file a twice"));
  EXPECT_THAT(error_in(answer_with(small("a") + "," + small("b", "13"))), HasSubstr("two sizes, 12 and 13"));
}

TEST(Repository, NoNameLeadsOutOfItsFolder) {
  for (const char* name : {"", "/etc/passwd", "../x", "a/../../x", "a/./b", ".", "a//b", "a/", "a\\\\b",
                           "a\\nb", "a\\u0000b", "a\\u001bb", "a\\u007fb", "a\\u0085b"})
    EXPECT_THAT(error_in(answer_with(small(name))),
                AnyOf(HasSubstr("plain relative path"), HasSubstr("zero")))
        << name;
  EXPECT_FALSE(is_safe_file_name(std::string(300, 'a')));
  std::string deep = "a";
  for (int i = 0; i < 600; ++i) deep += "/a";
  EXPECT_FALSE(is_safe_file_name(deep));
  for (const char* name : {"a", ".gitattributes", "a..b/c d.json", "größe.txt", "a/b/c"})
    EXPECT_TRUE(is_safe_file_name(name)) << name;
}

}  // namespace
}  // namespace sinkscope
