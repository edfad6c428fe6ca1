#include "eval/python_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

// Every expected list is what Python 3.11's random.Random(seed).sample(range(n), k) gives, call after call.
TEST(PythonRandom, DrawsFewOfManyAsPythonDoes) {
  PythonRandom random(1234);
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(6374, 3610, 957, 61, 742));
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(7462, 6610, 4769, 286, 5501));
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(5677, 687, 806, 6279, 2905));
  EXPECT_THAT(random.sample(7473, 5), ElementsAre(1939, 142, 252, 6461, 129));
}

TEST(PythonRandom, DrawsFromAPoolWhereThatIsSmaller) {
  PythonRandom random(1234);
  EXPECT_THAT(random.sample(20, 5), ElementsAre(14, 3, 0, 2, 1));
  EXPECT_THAT(random.sample(20, 5), ElementsAre(2, 3, 11, 7, 0));
  EXPECT_THAT(PythonRandom(0).sample(100, 30),
              ElementsAre(49, 97, 53, 5, 33, 65, 62, 51, 38, 61, 45, 74, 27, 64, 17, 36, 85, 12, 79, 32, 68,
                          77, 18, 39, 82, 9, 42, 60, 71, 75));
}

TEST(PythonRandom, KnowsWherePythonChangesItsWay) {
  PythonRandom random(7);
  EXPECT_THAT(random.sample(100, 6), ElementsAre(41, 19, 50, 83, 6, 9));
  EXPECT_THAT(random.sample(5, 5), ElementsAre(4, 0, 1, 3, 2));
  EXPECT_THAT(random.sample(1, 1), ElementsAre(0));
  EXPECT_THAT(random.sample(85, 21),
              ElementsAre(11, 55, 53, 8, 30, 84, 70, 54, 7, 72, 15, 28, 76, 50, 6, 73, 5, 17, 37, 82, 18));
  EXPECT_THAT(random.sample(300, 8), ElementsAre(276, 60, 292, 157, 286, 92, 52, 297));
}

TEST(PythonRandom, RefusesMoreThanThereIs) { EXPECT_THROW(PythonRandom(1).sample(3, 4), Error); }

}  // namespace
}  // namespace sinkscope
