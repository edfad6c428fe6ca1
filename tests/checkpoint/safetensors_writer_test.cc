#include "checkpoint/safetensors_writer.h"

#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

TEST(SafetensorsWriterTest, OurReaderReadsWhatItWrote) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<StoredTensor> tensors{{"matrix", DType::f32, {2, 3}},
                                          {"a \"quoted\" name", DType::bf16, {5}},
                                          {"scalar", DType::u8, {}},
                                          {"empty", DType::f16, {0, 7}}};
  std::string data;
  for (int i = 0; i < 2 * 3 * 4 + 5 * 2 + 1; ++i) data += static_cast<char>(i);
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}, {"made by", "a test"}});
  writer.write(bytes_of(data.substr(0, 30)));  // pieces need not end where tensors do
  writer.write(bytes_of(data.substr(30)));
  writer.finish();

  const SafetensorsFile file(path);
  EXPECT_EQ(file.tensors().size(), tensors.size());
  EXPECT_EQ(file.metadata().at("made by"), "a test");
  for (const StoredTensor& tensor : tensors) {
    EXPECT_EQ(file.tensor(tensor.name).dtype, tensor.dtype);
    EXPECT_EQ(file.tensor(tensor.name).shape, tensor.shape);
  }
  EXPECT_EQ(text_of(file.tensor("matrix")), data.substr(0, 24));
  EXPECT_EQ(text_of(file.tensor("a \"quoted\" name")), data.substr(24, 10));
  EXPECT_EQ(text_of(file.tensor("scalar")), data.substr(34));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.tensor("matrix").bytes.data()) % 8, 0U);
}

TEST(SafetensorsWriterTest, AFileMayHoldNoTensors) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  SafetensorsWriter(path, {}, {}).finish();
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
}

TEST(SafetensorsWriterTest, TooManyAndTooFewBytesAreRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  SafetensorsWriter writer(path, {{"t", DType::u8, {4}}});
  EXPECT_THAT(error_of([&] { writer.write(bytes_of("12345")); }),
              AllOf(HasSubstr("a.safetensors"), HasSubstr("have 4 bytes")));
  writer.write(bytes_of("123"));
  EXPECT_THAT(error_of([&] { writer.finish(); }), AllOf(HasSubstr("a.safetensors"), HasSubstr("only 3")));
}

TEST(SafetensorsWriterTest, NamesAndShapesThatNoReaderTakesAreRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto error = [&](const std::vector<StoredTensor>& tensors) {
    return error_of([&] { const SafetensorsWriter writer(path, tensors); });
  };
  EXPECT_THAT(error({{"twice", DType::u8, {1}}, {"twice", DType::u8, {1}}}), HasSubstr("\"twice\" is taken"));
  EXPECT_THAT(error({{"__metadata__", DType::u8, {1}}}), HasSubstr("\"__metadata__\" is taken"));
  EXPECT_THAT(error({{"minus", DType::u8, {-1}}}), AllOf(HasSubstr("\"minus\""), HasSubstr("[-1]")));
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_THAT(error({{"large", DType::f32, {large}}}), HasSubstr("\"large\""));
  EXPECT_THAT(error({{"a", DType::u8, {large, 2}}, {"b", DType::u8, {large, 2}}}),
              HasSubstr("too large for 64-bit sizes"));
}

TEST(SafetensorsWriterTest, AFileThatCannotBeMadeIsNamed) {
  EXPECT_THAT(error_of([] { const SafetensorsWriter writer("/nowhere/a.safetensors", {}); }),
              HasSubstr("/nowhere/a.safetensors"));
}

}  // namespace
}  // namespace sinkscope
