#include "text/word_counts.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"
#include "text/pretokenizer.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::write_file;

WordCounts count(const std::vector<std::filesystem::path>& files, int threads = 1,
                 std::vector<std::string> cut_out = {}, const std::string& pattern = qwen2_pattern) {
  return count_words(files, {.pattern = Regex(pattern, "pattern"),
                             .cut_out = std::move(cut_out),
                             .threads = threads,
                             .progress = {}});
}

TEST(WordCounts, WordsOfAllFilesInTheOrderOfTheirBytes) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "two and two");
  write_file(folder / "b.jsonl", "{\"prompt\": \"7 and\", \"answer\": \" and\"}\n");
  const WordCounts counts = count({folder / "a.txt", folder / "b.jsonl"});
  EXPECT_THAT(counts.words, ElementsAre(CountedWord{" and", 3}, CountedWord{" two", 1}, CountedWord{"7", 1},
                                        CountedWord{"two", 1}));
  EXPECT_EQ(counts.bytes, 11U + 5U + 4U);
}

TEST(WordCounts, ThePatternAndWhatLiesBetweenItsMatches) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "ab12c");
  EXPECT_THAT(count({folder / "a.txt"}, 1, {}, "[0-9]+").words,
              ElementsAre(CountedWord{"12", 1}, CountedWord{"ab", 1}, CountedWord{"c", 1}));
}

TEST(WordCounts, NoWordReachesAcrossASpecialToken) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "no<end>thing<end>");
  const WordCounts counts = count({folder / "a.txt"}, 1, {"<end>"});
  EXPECT_THAT(counts.words, ElementsAre(CountedWord{"no", 1}, CountedWord{"thing", 1}));
  EXPECT_EQ(counts.bytes, 17U);
}

TEST(WordCounts, DoNotDependOnThreads) {
  const TemporaryFolder folder;
  std::string text;
  for (std::int64_t i = 0; text.size() < 6'000'000; ++i)
    text += std::to_string(i * 7919 % 10007) + " words\n\n";
  write_file(folder / "a.txt", text);
  const std::vector<std::filesystem::path> files{folder / "a.txt"};
  const WordCounts one = count(files);
  for (const int threads : {2, 5}) EXPECT_EQ(count(files, threads).words, one.words);
  // Six chunks, and no word differs from those of the text as a whole: every blank line is in one.
  std::uint64_t blank_lines = 0;
  for (const CountedWord& word : one.words)
    if (word.bytes == "\n\n") blank_lines = word.count;
  EXPECT_EQ(2 * blank_lines, static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
}

TEST(WordCounts, OfSeveralErrorsTheFirstIsTold) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 1; i <= 200'000; ++i)
    text += i > 70'000 && i % 40'000 == 0 ? "{\"text\": 5}\n" : "{\"text\": \"words words words words\"}\n";
  write_file(folder / "a.jsonl", text);
  for (int round = 0; round < 5; ++round) {
    try {
      count({folder / "a.jsonl"}, 4);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("line 80000 must hold"));
    }
  }
}

TEST(WordCounts, AFileWithoutTextIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "text");
  write_file(folder / "empty.txt", "");
  write_file(folder / "blank.jsonl", "\n \n{\"text\": \"\"}\n");
  for (const char* name : {"empty.txt", "blank.jsonl"}) {
    try {
      count({folder / "a.txt", folder / name});
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(name) + " holds no text"));
    }
  }
}

}  // namespace
}  // namespace sinkscope
