// Every rule of the format, broken one at a time.
#include "checkpoint/safetensors_header.h"

#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "w.safetensors");
}

std::string error_in(const std::string& file) {
  return error_of([&] { parse(file); });
}

// The error of a header over 8 bytes of data.
std::string error_in_header(std::string_view header) {
  return error_in(safetensors_bytes(header, "12345678"));
}

TEST(SafetensorsHeaderTest, ReadsEveryDType) {
  const std::map<std::string, std::size_t> sizes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                    {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                    {"U8", 1},  {"BOOL", 1}};
  TestTensors tensors;
  for (const auto& [dtype, size] : sizes)
    tensors["t." + dtype] = {dtype, {3}, std::string(3 * size, dtype[0])};
  const std::string file = safetensors_file(tensors);
  const SafetensorsHeader header = parse(file);
  ASSERT_EQ(header.tensors.size(), sizes.size());
  for (const auto& [name, view] : header.tensors) {
    EXPECT_EQ(dtype_name(view.dtype), name.substr(2));
    EXPECT_EQ(view.shape, std::vector<std::int64_t>{3});
    EXPECT_EQ(view.bytes.size(), 3 * dtype_size(view.dtype)) << name;
    EXPECT_EQ(std::to_integer<char>(view.bytes.back()), name[2]) << name;
  }
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeaderTest, KeepsTheBitsOfSpecialBfloats) {
  const std::string bits("\x80\x3F\xC0\x7F\x00\x80\x01\x00", 8);  // 1, NaN, -0, the smallest denormal
  const std::string file = safetensors_file({{"x", {"BF16", {4}, bits}}});
  const SafetensorsHeader header = parse(file);
  const std::span<const std::byte> bytes = header.tensors.at("x").bytes;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), bits);
}

TEST(SafetensorsHeaderTest, ScalarsEmptyTensorsAndUnalignedDataAreFine) {
  const std::string file =
      safetensors_bytes(R"({"scalar": {"dtype": "F32", "shape": [], "data_offsets": [1, 5]},)"
                        R"( "none": {"dtype": "I64", "shape": [0, 7], "data_offsets": [5, 5]},)"
                        R"( "byte": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
                        std::string("\x07\x00\x00\x80\x3F", 5));
  const SafetensorsHeader header = parse(file);
  float value = 0;
  std::memcpy(&value, header.tensors.at("scalar").bytes.data(), sizeof value);  // at an odd offset
  EXPECT_EQ(value, 1.0F);
  EXPECT_EQ(header.tensors.at("scalar").element_count(), 1);
  EXPECT_EQ(header.tensors.at("none").element_count(), 0);
}

TEST(SafetensorsHeaderTest, TrailingSpacesAreAccepted) {
  EXPECT_TRUE(parse(safetensors_bytes("{}      ", "")).tensors.empty());
}

TEST(SafetensorsHeaderTest, LeadingSpacesAreNot) {
  EXPECT_THAT(error_in(safetensors_bytes(" {}", "")), HasSubstr("should begin with {"));
}

TEST(SafetensorsHeaderTest, HeaderLengthAboveTheCapIsNamedWithBothNumbers) {
  const std::string file("\x40\x9D\xDF\x07\x00\x00\x00\x00{}", 10);
  EXPECT_THAT(error_in(file),
              AllOf(HasSubstr("w.safetensors"), HasSubstr("132095296"), HasSubstr("100000000")));
}

TEST(SafetensorsHeaderTest, HeaderLengthIsCheckedAgainstTheFile) {
  const std::string file("\x50\x00\x00\x00\x00\x00\x00\x00{}", 10);
  EXPECT_THAT(error_in(file), AllOf(HasSubstr("truncated"), HasSubstr("at least 88"), HasSubstr("has 10")));
  EXPECT_THAT(error_in(std::string(8, '\xFF')), HasSubstr("18446744073709551615"));
}

TEST(SafetensorsHeaderTest, ZeroLengthIsNoHeader) {
  EXPECT_THAT(error_in(std::string(16, '\0')), HasSubstr("header of 0 bytes should begin with {"));
}

TEST(SafetensorsHeaderTest, EmptyAndShortFilesAreNamed) {
  EXPECT_THAT(error_in(""), HasSubstr("w.safetensors is empty"));
  EXPECT_THAT(error_in("\x01\x02"), HasSubstr("has 2 bytes"));
}

TEST(SafetensorsHeaderTest, OtherKindsOfFilesAreRecognised) {
  EXPECT_THAT(error_in("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
              AllOf(HasSubstr("Git LFS pointer"), HasSubstr("run git lfs pull")));
  EXPECT_THAT(error_in("\n <!DOCTYPE html><html><body>404"), HasSubstr("HTML page"));
  EXPECT_THAT(error_in("<HTML>"), HasSubstr("HTML page"));
  EXPECT_THAT(error_in("PK\x03\x04 and so on"), HasSubstr("PyTorch archive"));
  EXPECT_THAT(error_in("Entry not found"), AllOf(HasSubstr("is text"), HasSubstr("Entry not found")));
}

TEST(SafetensorsHeaderTest, BrokenJsonIsNamed) {
  EXPECT_THAT(error_in_header("{\"a\": "), AllOf(HasSubstr("w.safetensors"), HasSubstr("not valid JSON")));
  EXPECT_THAT(error_in_header(std::string("{}\0\0", 4)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in_header("{\"\xFF\": 1}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in_header("{\"a\":" + std::string(100'000, '[')), HasSubstr("deeper than 256"));
}

TEST(SafetensorsHeaderTest, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                                  "a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})"),
              HasSubstr("the key \"a\" stands twice"));
}

TEST(SafetensorsHeaderTest, MetadataHoldsStrings) {
  EXPECT_THAT(error_in_header(R"({"__metadata__": []})"), HasSubstr("__metadata__ should be an object"));
  EXPECT_THAT(error_in_header(R"({"__metadata__": {"k": 1}})"),
              AllOf(HasSubstr("strings"), HasSubstr("\"k\"")));
}

TEST(SafetensorsHeaderTest, EntriesAreObjectsWithThreeFields) {
  EXPECT_THAT(error_in_header(R"({"a": 1})"), AllOf(HasSubstr("tensor \"a\""), HasSubstr("an object")));
  EXPECT_THAT(error_in_header(R"({"a": {"shape": [8], "data_offsets": [0, 8]}})"),
              HasSubstr("dtype should be"));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": 1, "shape": [8], "data_offsets": [0, 8]}})"),
              HasSubstr("dtype should be a string, it is an integer"));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "data_offsets": [0, 8]}})"),
              HasSubstr("it is missing"));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": 8, "data_offsets": [0, 8]}})"),
              HasSubstr("shape should be a list"));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [8]}})"),
              HasSubstr("data_offsets should be two"));
}

TEST(SafetensorsHeaderTest, UnknownDTypesAreNamed) {
  EXPECT_THAT(error_in_header(R"({"w": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}})"),
              AllOf(HasSubstr("tensor \"w\""), HasSubstr("\"F8_E4M3\""), HasSubstr("BF16")));
}

TEST(SafetensorsHeaderTest, ShapesAreNonNegativeIntegers) {
  for (const char* extent : {"-1", "8.0", "\"8\"", "null", "1e400", "18446744073709551615", "[8]"}) {
    const std::string header =
        fmt::format(R"({{"a": {{"dtype": "U8", "shape": [{}], "data_offsets": [0, 8]}}}})", extent);
    EXPECT_THAT(error_in_header(header),
                ::testing::AnyOf(HasSubstr("non-negative"), HasSubstr("not valid JSON")))
        << extent;
  }
}

TEST(SafetensorsHeaderTest, ShapesThatOverflowAreRefused) {
  // 2^32 * 2^32 is 0 modulo 2^64, which the empty range would match.
  EXPECT_THAT(
      error_in_header(R"({"a": {"dtype": "U8", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})"),
      HasSubstr("too large"));
  EXPECT_THAT(
      error_in_header(R"({"a": {"dtype": "F64", "shape": [2305843009213693952], "data_offsets": [0, 0]}})"),
      HasSubstr("too large"));
}

TEST(SafetensorsHeaderTest, ShapeAndBytesHaveToAgree) {
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})"),
              AllOf(HasSubstr("[3]"), HasSubstr("takes 12 bytes"), HasSubstr("give it 8")));
}

TEST(SafetensorsHeaderTest, OffsetsAreOrderedIntegers) {
  for (const char* offsets : {"[8, 0]", "[-8, 0]", "[0.0, 8.0]", "[0]", "[0, 4, 8]", "[0, null]", "8"})
    EXPECT_THAT(error_in_header(
                    fmt::format(R"({{"a": {{"dtype": "U8", "shape": [8], "data_offsets": {}}}}})", offsets)),
                HasSubstr("data_offsets"))
        << offsets;
}

TEST(SafetensorsHeaderTest, TensorsCoverTheDataExactly) {
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [6], "data_offsets": [0, 6]},
                                  "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})"),
              AllOf(HasSubstr("tensor \"b\" begins at byte 4"), HasSubstr("ends at 6")));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                  "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})"),
              AllOf(HasSubstr("bytes 2 to 4"), HasSubstr("before tensor \"b\"")));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}})"),
              HasSubstr("belongs to no tensor"));
  EXPECT_THAT(error_in_header("{}"), HasSubstr("belongs to no tensor"));
}

TEST(SafetensorsHeaderTest, OffsetsNearTheEndOfTheNumbersAreOutOfBounds) {
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
      "b": {"dtype": "U8", "shape": [0], "data_offsets": [18446744073709551615, 18446744073709551615]}})"),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [9223372036854775807],
                                        "data_offsets": [0, 9223372036854775807]}})"),
              HasSubstr("truncated"));
}

TEST(SafetensorsHeaderTest, TruncatedDataIsNamedWithBothSizes) {
  const std::string whole = safetensors_file({{"a", bf16_zeros({100})}});
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2 + 20})
    EXPECT_THAT(error_in(whole.substr(0, size)),
                AllOf(HasSubstr("truncated"), HasSubstr(std::to_string(whole.size())),
                      HasSubstr(std::to_string(size))));
}

// Whatever prefix of a valid file is there, it is refused.
TEST(SafetensorsHeaderTest, EveryPrefixIsRefused) {
  const std::string whole = safetensors_file({{"a", bf16_zeros({3})}, {"b", bf16_zeros({2, 2})}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_in(whole.substr(0, size)), "(no Error)") << size;
  EXPECT_NE(error_in(whole + '\0'), "(no Error)");
}

}  // namespace
}  // namespace sinkscope
