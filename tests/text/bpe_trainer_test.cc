#include "text/bpe_trainer.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "text/byte_level.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::int32_t id_of(char byte) {
  const auto order = byte_alphabet_order();
  return static_cast<std::int32_t>(std::find(order.begin(), order.end(), static_cast<unsigned char>(byte)) -
                                   order.begin());
}

// What a token stands for.
std::string bytes_of(const std::vector<LearnedMerge>& merges, std::int32_t id) {
  if (id < 256) return {static_cast<char>(byte_alphabet_order()[static_cast<std::size_t>(id)])};
  const LearnedMerge& merge = merges[static_cast<std::size_t>(id - 256)];
  return bytes_of(merges, merge.left) + bytes_of(merges, merge.right);
}

std::vector<std::string> written(const LearnedBpe& learned) {
  std::vector<std::string> lines;
  for (const LearnedMerge& merge : learned.merges)
    lines.push_back(bytes_of(learned.merges, merge.left) + "|" + bytes_of(learned.merges, merge.right));
  return lines;
}

LearnedBpe train(const std::vector<CountedWord>& words, std::size_t most, std::uint64_t least = 1) {
  return train_bpe(words, {.most_merges = most, .min_frequency = least, .progress = {}});
}

// The definition, word for word: all pairs are counted anew for every merge.
LearnedBpe slow_train(const std::vector<CountedWord>& words, std::size_t most, std::uint64_t least) {
  std::vector<std::vector<std::int32_t>> cut(words.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const char byte : words[i].bytes) cut[i].push_back(id_of(byte));
  LearnedBpe learned;
  while (learned.merges.size() < most) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> counts;
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t j = 1; j < cut[i].size(); ++j) counts[{cut[i][j - 1], cut[i][j]}] += words[i].count;
    std::pair<std::int32_t, std::int32_t> best;
    std::uint64_t highest = 0;
    for (const auto& [pair, count] : counts)  // in the order of the ids: the first of equals stays
      if (count > highest) std::tie(best, highest) = std::pair(pair, count);
    if (highest < least || highest == 0) break;
    const auto made = static_cast<std::int32_t>(256 + learned.merges.size());
    learned.merges.push_back({best.first, best.second});
    for (auto& ids : cut)
      for (std::size_t j = 0; j + 1 < ids.size(); ++j)
        if (ids[j] == best.first && ids[j + 1] == best.second) {
          ids[j] = made;
          ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(j) + 1);
        }
  }
  for (std::size_t i = 0; i < words.size(); ++i) learned.tokens += words[i].count * cut[i].size();
  return learned;
}

TEST(BpeTrainer, MergesComputedByHand) {
  // Sennrich's words. es and st stand 9 times (6 newest, 3 widest), we 8; e < s. Then es|t 9 times; then l|o,
  // o|w 7 times, est having no letter behind it and e before w 6.
  const LearnedBpe learned = train({{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}}, 6);
  EXPECT_THAT(written(learned), ElementsAre("e|s", "es|t", "l|o", "lo|w", "e|w", "n|ew"));
  // low 5; low e r 6; new est 12; w i d est 12
  EXPECT_EQ(learned.tokens, 5U + 6U + 12U + 12U);
}

TEST(BpeTrainer, OfEqualPairsTheLowestIdsGoFirst) {
  EXPECT_THAT(written(train({{"ba", 1}, {"ab", 1}, {"aa", 1}}, 3)), ElementsAre("a|a", "a|b", "b|a"));
  // Ids follow the alphabet, not the bytes: a space (U+0120) comes behind the letters.
  EXPECT_THAT(written(train({{" a", 1}, {"z ", 1}}, 2)), ElementsAre("z| ", " |a"));
}

TEST(BpeTrainer, OverlappingPairsCountAndAreReplacedFromTheLeft) {
  EXPECT_THAT(written(train({{"aaaa", 1}, {"bc", 2}}, 4)), ElementsAre("a|a", "b|c", "aa|aa"));
  const LearnedBpe odd = train({{"aaaaa", 1}}, 2);
  EXPECT_THAT(written(odd), ElementsAre("a|a", "aa|a"));
  EXPECT_EQ(odd.tokens, 2U);
}

TEST(BpeTrainer, EndsWhereNoPairIsFrequent) {
  const std::vector<CountedWord> words{{"ab", 3}, {"cd", 2}, {"ef", 1}};
  EXPECT_THAT(written(train(words, 100, 3)), ElementsAre("a|b"));
  EXPECT_THAT(written(train(words, 100, 2)), ElementsAre("a|b", "c|d"));
  EXPECT_THAT(written(train(words, 100)), ElementsAre("a|b", "c|d", "e|f"));
  EXPECT_THAT(written(train(words, 1)), ElementsAre("a|b"));
  EXPECT_THAT(written(train({}, 100)), IsEmpty());
  EXPECT_THAT(written(train({{"a", 7}}, 100)), IsEmpty());
}

TEST(BpeTrainer, EqualsTheDefinitionOnRandomWords) {
  std::mt19937 random(20261201);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 400; ++round) {
    const std::size_t letters = 1 + below(4);  // few letters: many ties, many overlapping pairs
    std::vector<CountedWord> words(1 + below(12));
    for (CountedWord& word : words) {
      word.count = 1 + below(4);
      for (std::size_t size = below(14); size > 0; --size)
        word.bytes.push_back(static_cast<char>(below(5) == 0 ? ' ' : 'a' + below(letters)));
    }
    const std::uint64_t least = 1 + below(3);
    const LearnedBpe learned = train(words, 40, least), slow = slow_train(words, 40, least);
    ASSERT_EQ(learned.merges, slow.merges) << "round " << round;
    ASSERT_EQ(learned.tokens, slow.tokens) << "round " << round;
    std::set<std::string> made;
    for (std::size_t i = 0; i < learned.merges.size(); ++i)
      ASSERT_TRUE(made.insert(bytes_of(learned.merges, static_cast<std::int32_t>(256 + i))).second);
  }
}

TEST(BpeTrainer, OneLongWordTakesNoLongerThanManyShortOnes) {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 300'000; ++i) text.push_back(static_cast<char>('a' + random() % 26));
  // Looking through the word for every merge would take minutes here.
  EXPECT_EQ(train({{text, 1}}, 2000).merges.size(), 2000U);
}

}  // namespace
}  // namespace sinkscope
