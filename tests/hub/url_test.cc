#include "hub/url.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(Url, AddressesAreThoseOfTheHub) {
  const HubId id{"a", "b", "refs/pr/1"};
  EXPECT_EQ(repository_url("https://h/x", id),
            "https://h/x/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true");
  EXPECT_EQ(file_url("https://h", id, "c0", "sub/a b#?.json"),
            "https://h/a/b/resolve/c0/sub/a%20b%23%3F.json");
  EXPECT_EQ(percent_encoded("\xC3\xB6-._~%"), "%C3%B6-._~%25");
}

TEST(Url, AnOriginIsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://HuggingFace.co/a/b"), "https://huggingface.co:443");
  EXPECT_EQ(origin_of("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(origin_of("https://huggingface.co@evil.org/"), "https://evil.org:443");
  EXPECT_NE(origin_of("http://huggingface.co"), origin_of("https://huggingface.co"));
  for (const char* text :
       {"", "huggingface.co", "ftp://h/", "file:///etc/passwd", "https://", "https://a b/"})
    EXPECT_EQ(origin_of(text), "") << text;
}

}  // namespace
}  // namespace sinkscope
