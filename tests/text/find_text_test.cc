#include "text/find_text.h"

#include <gtest/gtest.h>

#include <string>

namespace sinkscope {
namespace {

TEST(FindText, FindsTheFirstPlaceAtOrBehindAnother) {
  EXPECT_EQ(find_text("abcabc", "bc"), 1u);
  EXPECT_EQ(find_text("abcabc", "bc", 2), 4u);
  EXPECT_EQ(find_text("abc", "d"), std::string_view::npos);
  EXPECT_EQ(find_text("abc", "", 3), 3u);
  EXPECT_EQ(find_text("abc", "a", 4), std::string_view::npos);
}

// Comparing anew at every place would take 10^11 steps here.
TEST(FindText, TakesLinearTime) {
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(find_text(text, std::string(100'000, 'a') + "b" + std::string(100'000, 'a')),
            std::string_view::npos);
}

}  // namespace
}  // namespace sinkscope
