#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SafetensorsFileTest, ViewsSurviveAMove) {
  const TemporaryFolder directory;
  const auto path =
      write_text(directory.path() / "x.safetensors", safetensors_file({{"x", {"U8", {2}, "ab"}}}));
  SafetensorsFile first(path);
  const std::byte* data = first.tensor("x").bytes.data();
  const SafetensorsFile second(std::move(first));
  EXPECT_EQ(second.tensor("x").bytes.data(), data);
  EXPECT_EQ(std::to_integer<char>(second.tensor("x").bytes[1]), 'b');
  EXPECT_EQ(second.path(), path);
  EXPECT_EQ(second.metadata().at("format"), "pt");
}

TEST(SafetensorsFileTest, UnknownNamesAreNamed) {
  const TemporaryFolder directory;
  const SafetensorsFile file(write_text(directory.path() / "x.safetensors", safetensors_file({})));
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_THAT(error_of([&] { file.tensor("y"); }),
              AllOf(HasSubstr("x.safetensors"), HasSubstr("no tensor \"y\"")));
}

TEST(SafetensorsFileTest, MissingFilesAreNamed) {
  EXPECT_THAT(error_of([] { SafetensorsFile("/nowhere/x.safetensors"); }),
              HasSubstr("/nowhere/x.safetensors"));
}

TEST(SafetensorsFileTest, ReleasedPagesReadTheSameAgain) {
  const TemporaryFolder directory;
  const std::string content(100'000, 'q');
  const SafetensorsFile file(
      write_text(directory.path() / "x.safetensors", safetensors_file({{"x", {"U8", {100'000}, content}}})));
  const std::span<const std::byte> bytes = file.tensor("x").bytes;
  const auto text = [&] { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  EXPECT_EQ(text(), content);
  release_pages(bytes);
  EXPECT_EQ(text(), content);
  release_pages({});
  prefetch_pages(bytes);
  prefetch_pages({});
}

TEST(SafetensorsFileTest, ShapesOfManyAxesAreCutInMessages) {
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{2, 3}), "[2, 3]");
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_THAT(shape_text(std::vector<std::int64_t>(1000, 1)), HasSubstr("1000 axes"));
}

TEST(SafetensorsFileTest, ReadsTheGoldenResults) {
  const SafetensorsFile file(SINKSCOPE_TEST_DATA "/golden/llada-random/golden.safetensors");
  EXPECT_EQ(file.tensor("forward.input_ids").dtype, DType::i64);
  EXPECT_EQ(file.tensor("forward.logits").shape, (std::vector<std::int64_t>{2, 33, 300}));
}

}  // namespace
}  // namespace sinkscope
