#include "checkpoint/weight_index.h"

#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_in(std::string_view text) {
  return error_of([&] { parse_weight_index(text, "i.json"); });
}

TEST(WeightIndexTest, MapsTensorsToFiles) {
  const auto map =
      parse_weight_index(R"({"metadata": {"total_size": 1}, "weight_map": {"a": "m-1.safetensors"}})", "i");
  EXPECT_EQ(map.at("a"), "m-1.safetensors");
}

TEST(WeightIndexTest, FilesOutsideTheFolderAreRefused) {
  for (const char* file : {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "a\\x.safetensors",
                           "..", ".safetensors", "", "x\\u0000.safetensors"})
    EXPECT_THAT(error_in(fmt::format(R"({{"weight_map": {{"t": "{}"}}}})",
                                     std::string(file) == "a\\x.safetensors" ? "a\\\\x.safetensors" : file)),
                AllOf(HasSubstr("i.json"), HasSubstr("\"t\""), HasSubstr("plain name")))
        << file;
}

TEST(WeightIndexTest, OtherWeightFormatsAreRefused) {
  EXPECT_THAT(error_in(R"({"weight_map": {"t": "pytorch_model-1.bin"}})"), HasSubstr("pytorch_model-1.bin"));
}

TEST(WeightIndexTest, TheMapHasToBeThere) {
  EXPECT_THAT(error_in("[]"), HasSubstr("should hold an object"));
  EXPECT_THAT(error_in("{}"), HasSubstr("weight_map should be an object"));
  EXPECT_THAT(error_in(R"({"weight_map": []})"), HasSubstr("it is an array"));
  EXPECT_THAT(error_in(R"({"weight_map": {}})"), HasSubstr("names no tensor"));
  EXPECT_THAT(error_in(R"({"weight_map": {"t": 1}})"), HasSubstr("the file 1"));
  EXPECT_THAT(error_in("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_in("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
}

}  // namespace
}  // namespace sinkscope
