#include "text/training_text.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::write_file;

std::vector<TextChunk> chunks_of(const std::vector<std::filesystem::path>& files) {
  TrainingTextReader reader(files);
  std::vector<TextChunk> chunks;
  for (TextChunk chunk; reader.next(chunk);) chunks.push_back(chunk);
  return chunks;
}

// The message of the Error that reading these files throws.
std::string reading_error(const std::vector<std::filesystem::path>& files) {
  try {
    for (const TextChunk& chunk : chunks_of(files)) texts_of(chunk, files[chunk.file].filename());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TrainingText, ChunksAreWholeLinesAndNothingIsLost) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += "line " + std::to_string(i) + "\n\n \tmore\n";
  write_file(folder / "a.txt", text);
  write_file(folder / "b.txt", "no newline");
  const auto chunks = chunks_of({folder / "a.txt", folder / "b.txt"});
  ASSERT_GE(chunks.size(), 4U);
  std::string joined;
  std::uint64_t line = 1;
  for (const TextChunk& chunk : chunks) {
    if (chunk.file == 1) break;
    EXPECT_EQ(chunk.offset, joined.size());
    EXPECT_EQ(chunk.line, line);
    EXPECT_THAT(chunk.bytes, ::testing::StartsWith("line "));  // white space stays with what is before it
    line += static_cast<std::uint64_t>(std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n'));
    joined += chunk.bytes;
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(chunks.back().bytes, "no newline");
  EXPECT_EQ(chunks.back().line, 1U);
}

TEST(TrainingText, ATextWithoutPlaceToCutIsOneChunk) {
  const TemporaryFolder folder;
  write_file(folder / "long.txt", std::string(3'000'000, 'a'));
  // The no-break space behind each newline is white space too.
  std::string spaces;
  while (spaces.size() < 3'000'000) spaces += "word\n\u00A0";
  write_file(folder / "spaces.txt", spaces);
  const auto chunks = chunks_of({folder / "long.txt", folder / "spaces.txt"});
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[0].bytes.size(), 3'000'000U);
  EXPECT_EQ(chunks[1].bytes, spaces);
}

TEST(TrainingText, JsonLinesHoldTextsOrPromptsAndAnswers) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl",
             "{\"text\": \"one\\ntwo\"}\n\n{\"prompt\": \"p\", \"answer\": \"a\"}\r\n"
             "{\"question\": \"q\", \"answer\": \"r\", \"other\": 5}");
  const auto chunks = chunks_of({folder / "a.jsonl"});
  std::vector<std::string> texts;
  for (const TextChunk& chunk : chunks)
    for (const std::string& text : texts_of(chunk, "a.jsonl")) texts.push_back(text);
  EXPECT_THAT(texts, ElementsAre("one\ntwo", "p", "a", "q", "r"));
}

TEST(TrainingText, BrokenInputIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "latin.txt", "one\ntwo\nna\xEFve\n");
  EXPECT_THAT(reading_error({folder / "latin.txt"}),
              HasSubstr("latin.txt line 3 is not UTF-8 at byte 10 of the file (0xEF)"));
  write_file(folder / "cut.txt", "a\xC3");
  EXPECT_THAT(reading_error({folder / "cut.txt"}), HasSubstr("cut.txt line 1 is not UTF-8 at byte 1"));
  std::string far;
  while (far.size() < 2'000'000) far += "words of a line\n";
  write_file(folder / "far.txt", far + "\xFF\n");
  EXPECT_THAT(reading_error({folder / "far.txt"}),
              HasSubstr("line 125001 is not UTF-8 at byte 2000000 of the file"));
  write_file(folder / "lines.jsonl", "{\"text\": \"a\"}\n{\"text\": 5}\n");
  EXPECT_THAT(reading_error({folder / "lines.jsonl"}),
              HasSubstr("lines.jsonl line 2 must hold a JSON object with a string `text`"));
  write_file(folder / "half.jsonl", "{\"prompt\": \"a\"}\n");
  EXPECT_THAT(reading_error({folder / "half.jsonl"}), HasSubstr("half.jsonl line 1 must hold"));
  write_file(folder / "list.jsonl", "[\"text\"]\n");
  EXPECT_THAT(reading_error({folder / "list.jsonl"}), HasSubstr("list.jsonl line 1 must hold"));
  write_file(folder / "broken.jsonl", "\n{\"text\": \n");
  EXPECT_THAT(reading_error({folder / "broken.jsonl"}), HasSubstr("broken.jsonl line 2 is not valid JSON"));
}

TEST(TrainingText, FilesThatAreNotThereAreNamedBeforeAnythingIsRead) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "text");
  const auto message = [&](const std::filesystem::path& file) -> std::string {
    try {
      const TrainingTextReader reader({folder / "a.txt", file});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(folder / "none.txt"), HasSubstr("none.txt: No such file"));
  EXPECT_THAT(message(folder.path()), HasSubstr("is a directory, not a file"));
}

}  // namespace
}  // namespace sinkscope
