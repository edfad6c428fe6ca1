#include "eval/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Cell>& cells) {
  std::vector<std::string> names;
  for (const Cell& cell : cells) names.push_back(cell.name);
  return names;
}

TEST(Grid, NothingMaskedIsOneCell) {
  EXPECT_THAT(names_of(grid_cells({0, 1, 5}, {"columns", "last"}, {"none", "random"})),
              ElementsAre("plain", "columns-1", "columns-1-random", "columns-5", "columns-5-random", "last-1",
                          "last-1-random", "last-5", "last-5-random"));
  EXPECT_THAT(names_of(grid_cells({1}, {"own"}, {"random"})), ElementsAre("own-1-random"));
}

TEST(Grid, ListsAreCheckedEntryByEntry) {
  EXPECT_THAT(parse_numbers("0,1,10", "--sink-top-k"), ElementsAre(0, 1, 10));
  EXPECT_THAT(parse_names("a,b", "--tasks"), ElementsAre("a", "b"));
  for (const char* wrong : {"", "1,", ",1", "1,1", "-1", "x", "1 ", "99999999999"})
    EXPECT_THROW(parse_numbers(wrong, "--sink-top-k"), UsageError) << wrong;
}

}  // namespace
}  // namespace sinkscope
