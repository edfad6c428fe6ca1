#include "eval/planning.h"

#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

TEST(Countdown, ChecksEveryEquation) {
  EXPECT_TRUE(solves_countdown("15,44,79,50", "44-15=29,79-29=50"));
  EXPECT_TRUE(solves_countdown("15,44,79,50", " 44 - 15 = 29, 79 - 29 = 50\n"));
  EXPECT_TRUE(solves_countdown("1,2,12,25", "2*12=24,24+1=25"));
  EXPECT_TRUE(solves_countdown("2,10,20,4", "20/10=2,2+2=4"));
  EXPECT_FALSE(solves_countdown("15,44,79,50", "44-15=29,79-29=51"));  // does not hold
  EXPECT_FALSE(solves_countdown("15,44,79,50", "79-29=50"));           // 29 is not there
  EXPECT_FALSE(solves_countdown("15,44,79,94", "15+79=94"));           // 44 is left
  EXPECT_FALSE(solves_countdown("15,44,79,50", "44-15=29,79-29=50,50-50=0"));
  EXPECT_FALSE(solves_countdown("5,2,1,2", "5/2=2,2*1=2"));  // leaves a remainder
  EXPECT_FALSE(solves_countdown("5,0,1,1", "5/0=1,1*1=1"));
  EXPECT_FALSE(solves_countdown("15,44,79,50", ""));
  EXPECT_FALSE(solves_countdown("15,44,79,50", "99999999999999999999-1=1"));
}

TEST(Countdown, NegativeResultsMayBeUsed) { EXPECT_TRUE(solves_countdown("1,3,5,3", "1-3=-2,-2+5=3")); }

TEST(Countdown, NamesAProblemThatIsNone) {
  EXPECT_THROW(solves_countdown("1,x,3", "1+3=4"), Error);
  EXPECT_THROW(solves_countdown("7", "7"), Error);
}

TEST(Sudoku, ChecksTheRules) {
  const char* const problem = "1003\n0300\n3210\n4132";
  EXPECT_TRUE(solves_sudoku(problem, "1423\n2341\n3214\n4132"));
  EXPECT_TRUE(solves_sudoku(problem, "1423 2341 3214 4132 and more 99"));
  EXPECT_FALSE(solves_sudoku(problem, "2413\n1324\n3241\n4132"));  // a given cell is not kept
  EXPECT_FALSE(solves_sudoku(problem, "1423\n2341\n3214"));
  EXPECT_FALSE(solves_sudoku("0000000000000000", "1234123412341234"));  // columns
  EXPECT_FALSE(solves_sudoku("0000000000000000", "1234234134124123"));  // boxes
  EXPECT_FALSE(solves_sudoku("0000000000000000", "1234567812345678"));
}

TEST(Sudoku, NamesAProblemThatIsNone) { EXPECT_THROW(solves_sudoku("123", "1"), Error); }

}  // namespace
}  // namespace sinkscope
