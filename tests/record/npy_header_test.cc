#include "record/npy_header.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

NpyHeader read(const std::string& array) {
  return read_npy_header(std::as_bytes(std::span(array)), "array x");
}

// A version 1 array with this dictionary and so many bytes of data.
std::string array_with(const std::string& dictionary, std::size_t data) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(dictionary.size() % 256) +
         static_cast<char>(dictionary.size() / 256) + dictionary + std::string(data, 'x');
}

TEST(NpyHeader, IsWhatNumpyWrites) {
  const std::string header = write_npy_header(ArrayType::float32, std::vector<std::int64_t>{3, 4});
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  EXPECT_EQ(header, std::string("\x93NUMPY\1\0v\0", 10) + dictionary + std::string(58, ' ') + "\n");
  EXPECT_THAT(write_npy_header(ArrayType::uint8, std::vector<std::int64_t>{5}),
              HasSubstr("'|u1', 'fortran_order': False, 'shape': (5,), }"));
  EXPECT_THAT(write_npy_header(ArrayType::int32, {}), HasSubstr("'shape': (), }"));
  for (std::int64_t size = 1; size < 1'000'000'000'000'000'000; size *= 7)
    EXPECT_EQ(write_npy_header(ArrayType::float16, std::vector<std::int64_t>{size, size, size}).size() % 64,
              0U);
}

TEST(NpyHeader, GoesThereAndBack) {
  for (const ArrayType type : {ArrayType::uint8, ArrayType::int32, ArrayType::int64, ArrayType::float16,
                               ArrayType::float32, ArrayType::float64}) {
    const NpyHeader header =
        read(write_npy_header(type, std::vector<std::int64_t>{2, 3}) + std::string(6 * size_of(type), 'x'));
    EXPECT_EQ(header.type, type);
    EXPECT_THAT(header.shape, ElementsAre(2, 3));
    EXPECT_EQ(header.size, 128U);
  }
}

TEST(NpyHeader, ReadsOtherSpellings) {
  EXPECT_THAT(read(array_with("{\"shape\":(2L,),'descr':\"<i4\",'fortran_order':False}", 8)).shape,
              ElementsAre(2));
  EXPECT_THAT(read(array_with("{'descr': '|b1', 'fortran_order': False, 'shape': ()}\n", 1)).shape,
              IsEmpty());
  EXPECT_THAT(read(array_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", 8)).shape,
              ElementsAre(2));
  // Versions 2 and 3 have four bytes of length.
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  const std::string version2 = std::string("\x93NUMPY\2\0", 8) + static_cast<char>(dictionary.size()) +
                               std::string(3, '\0') + dictionary + "abcd";
  EXPECT_THAT(read(version2).shape, ElementsAre(1));
}

TEST(NpyHeader, AnEmptyDimensionHasNoData) {
  EXPECT_THAT(
      read(array_with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807), }", 0))
          .shape,
      ElementsAre(0, 9223372036854775807));
}

TEST(NpyHeader, RefusesWhatItCannotRead) {
  const auto refusal = [](const std::string& dictionary, std::size_t data, const std::string& message) {
    EXPECT_THAT([&] { read(array_with(dictionary, data)); }, ThrowsMessage<Error>(HasSubstr(message)))
        << dictionary;
  };
  refusal("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, "big-endian");
  refusal("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "Python objects");
  refusal("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "element type '<c8'");
  refusal("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "structured");
  refusal("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", 4, "numpy.ascontiguousarray");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4,
          "array x holds 4 bytes of data, which is not what its shape (2) of float32 takes");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 5, "5 bytes");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, "shape");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", 0, "shape");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 0, "too large");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 0, "no whole number");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", 0, "')' is missing");
  refusal("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", 4, "neither True nor False");
  refusal("{'descr': '<f4', 'fortran_order': False, }", 4, "no descr, fortran_order or shape");
  refusal("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "unexpected key");
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", 4, "text after");
  refusal("{'descr': '<f4", 4, "does not end");
  refusal("", 4, "'{' is missing");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1,";
  refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (" + many + ")}", 4, "too many dimensions");
}

TEST(NpyHeader, RefusesTornHeaders) {
  EXPECT_THAT([] { read(""); }, ThrowsMessage<Error>("array x is no .npy array"));
  EXPECT_THAT([] { read("\x93NUMPY"); }, ThrowsMessage<Error>("array x is no .npy array"));
  EXPECT_THAT([] { read(std::string("\x93NUMPY\4\0", 8)); },
              ThrowsMessage<Error>(HasSubstr(".npy version 4")));
  EXPECT_THAT([] { read(std::string("\x93NUMPY\1\0\xff", 9)); }, ThrowsMessage<Error>(HasSubstr("cut off")));
  EXPECT_THAT([] { read(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)); },
              ThrowsMessage<Error>(HasSubstr("cut off")));
}

}  // namespace
}  // namespace sinkscope
