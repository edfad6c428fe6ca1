#include "eval/math_answer.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(MathAnswer, TakesTheLastBox) {
  EXPECT_EQ(last_boxed("first \\boxed{1}, then \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}");
  EXPECT_EQ(last_boxed("\\boxed 7$ and"), "7");
  EXPECT_EQ(last_boxed("\\fbox{9}"), "9");
  EXPECT_EQ(last_boxed("\\boxed{\\{1,2\\}}"), "\\{1,2\\}");
  EXPECT_EQ(last_boxed("\\boxed{1"), std::nullopt);
  EXPECT_EQ(last_boxed("no box"), std::nullopt);
  EXPECT_EQ(last_boxed("\\boxed"), std::nullopt);
}

struct Case {
  const char* a;
  const char* b;
  bool equal;
};

class Answers : public ::testing::TestWithParam<Case> {};

TEST_P(Answers, AreComparedByWhatTheyMean) {
  EXPECT_EQ(is_math_equal(GetParam().a, GetParam().b), GetParam().equal)
      << normalised_math(GetParam().a) << " and " << normalised_math(GetParam().b);
}

INSTANTIATE_TEST_SUITE_P(
    Same, Answers,
    ::testing::Values(Case{"\\dfrac{1}{2}", "\\frac12", true}, Case{"1/2", "\\frac{1}{2}", true},
                      Case{"0.5", "\\frac{1}{2}", true}, Case{".50", "0.5", true},
                      Case{"-\\frac{3}{4}", "-0.75", true}, Case{"\\frac{-3}{4}", "-0.75", true},
                      Case{"\\sqrt2", "\\sqrt{2}", true}, Case{"1,234,567", "1234567", true},
                      Case{"$18.00", "18", true}, Case{"x = 5", "5", true},
                      Case{"\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})", true},
                      Case{"90^\\circ", "90", true}, Case{"50\\%", "50", true},
                      Case{"12\\text{ cm}", "12", true}, Case{"\\text{Evelyn}", "Evelyn", true},
                      Case{"10\\!000", "10000", true}, Case{"3 \\sqrt{13}", "3\\sqrt{13}", true},
                      Case{"(-\\infty, 0]", "(-\\infty,0]", true}, Case{"007", "7", true},
                      Case{"+7", "7", true}, Case{"-0", "0", true}, Case{"7.", "7", true},
                      Case{"\\frac{1}{3}", "1/3", true}));

INSTANTIATE_TEST_SUITE_P(Different, Answers,
                         ::testing::Values(Case{"1", "2", false}, Case{"1,2", "12", false},
                                           Case{"\\frac{1}{3}", "0.333", false},
                                           Case{"\\sqrt{2}", "2", false}, Case{"-1", "1", false},
                                           Case{"(1,2)", "(2,1)", false}, Case{"\\leftarrow", "arrow", false},
                                           Case{"1/0", "0", false}, Case{"", "0", false},
                                           Case{"x=1=2", "2", false}));

TEST(MathAnswer, ReadsWhateverAModelWrites) {
  for (const char* text : {"\\frac", "\\frac{", "\\frac1", "\\sqrt", "\\text{", "{", "}", "\\", "\\frac{}{}",
                           "-", ".", "\\frac{999999999}{7}", "\\frac{-}{2}", "\xff\xfe", ",,,", "1,", ",123"})
    (void)normalised_math(text);
}

}  // namespace
}  // namespace sinkscope
