#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>

#include <limits>

#include "record/python.h"
#include "record/zip_bytes.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using test::deflated_zip;
using test::npy_of;
using test::run_python;
using test::zip_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

NpzFile open(const std::string& archive, std::uint64_t limit = NpzFile::default_inflate_limit) {
  return {std::as_bytes(std::span(archive)), "x.npz", limit};
}

TEST(NpzFile, ReadsWhatTheWriterWrites) {
  const TemporaryFolder folder;
  NpzWriter writer(folder / "a.npz");
  writer.declare("f16", ArrayType::float16, {2});
  writer.declare("f32", ArrayType::float32, {2});
  writer.add("scalar", {}, std::vector<std::int32_t>{-7});
  writer.add("bytes", {3}, std::vector<std::uint8_t>{0, 1, 255});
  for (const float x : {0.5F, 1.5F, 2.5F}) {
    writer.append("f16", std::vector<float>{x, -x});
    writer.append("f32", std::vector<float>{x / 3, 1e30F});
  }
  writer.finish();
  const NpzFile file(folder / "a.npz");
  EXPECT_THAT(file.names(), ElementsAre("f16", "f32", "scalar", "bytes"));
  EXPECT_TRUE(file.contains("f16"));
  EXPECT_FALSE(file.contains("f1"));
  EXPECT_EQ(file.array("f16").type, ArrayType::float16);
  EXPECT_THAT(file.array("f16").shape, ElementsAre(3, 2));
  EXPECT_EQ(file.array("f16").count(), 6U);
  EXPECT_THAT(file.floats("f16"), ElementsAre(0.5F, -0.5F, 1.5F, -1.5F, 2.5F, -2.5F));
  EXPECT_THAT(file.floats("f32", 1, 2), ElementsAre(0.5F, 1e30F, 2.5F / 3, 1e30F));
  EXPECT_THAT(file.floats("f32", 3, 0), IsEmpty());
  EXPECT_EQ(file.int32_scalar("scalar"), -7);
  EXPECT_THAT(file.int32s("bytes"), ElementsAre(0, 1, 255));
  EXPECT_THAT(file.floats("bytes"), ElementsAre(0, 1, 255));
  file.verify();
}

TEST(NpzFile, ReadsWhatNumpyWrites) {
  REQUIRE_NUMPY(python);
  const TemporaryFolder folder;
  const auto result = run_python(*python, folder, R"(
arrays = dict(half=np.arange(6, dtype='f2').reshape(2, 3) / 4, single=np.float32([1.5, np.inf]), double=np.float64([0.1, 1e300]),
              small=np.int32([[-1, 2]]), large=np.int64([5, -6]), truth=np.array([True, False]), scalar=np.int32(9), empty=np.zeros((0, 4), 'f4'))
np.savez('stored.npz', **arrays)
np.savez_compressed('packed.npz', **arrays)
)");
  ASSERT_EQ(result.status, 0) << result.output;
  for (const char* name : {"stored.npz", "packed.npz"}) {
    const NpzFile file(folder / name);
    file.verify();
    EXPECT_THAT(file.names(),
                ElementsAre("half", "single", "double", "small", "large", "truth", "scalar", "empty"));
    EXPECT_THAT(file.floats("half"), ElementsAre(0, 0.25F, 0.5F, 0.75F, 1, 1.25F));
    EXPECT_THAT(file.floats("half", 1, 1), ElementsAre(0.75F, 1, 1.25F));
    EXPECT_THAT(file.floats("single"), ElementsAre(1.5F, std::numeric_limits<float>::infinity()));
    EXPECT_THAT(file.floats("double"), ElementsAre(0.1F, std::numeric_limits<float>::infinity()));
    EXPECT_THAT(file.array("small").shape, ElementsAre(1, 2));
    EXPECT_THAT(file.int32s("large"), ElementsAre(5, -6));
    EXPECT_THAT(file.int32s("truth"), ElementsAre(1, 0));
    EXPECT_EQ(file.int32_scalar("scalar"), 9);
    EXPECT_THAT(file.array("empty").shape, ElementsAre(0, 4));
    EXPECT_THAT(file.floats("empty"), IsEmpty());
  }
}

TEST(NpzFile, NamesWhatIsMissingAndWhatThereIs) {
  const std::string archive =
      zip_of({{"states.npy", npy_of({1})}, {"readme.txt", "not an array"}, {"proposed.npy", npy_of({2})}});
  EXPECT_THAT([&] { open(archive).array("row_entropy"); },
              ThrowsMessage<Error>("x.npz holds no array named row_entropy; it holds states, proposed"));
}

TEST(NpzFile, RefusesWrongUse) {
  const TemporaryFolder folder;
  NpzWriter writer(folder / "a.npz");
  writer.add("f", ArrayType::float32, {2}, std::vector<float>{1, 2});
  writer.add("i", {}, std::vector<std::int32_t>{1});
  writer.finish();
  const NpzFile file(folder / "a.npz");
  EXPECT_THAT([&] { file.int32s("f"); },
              ThrowsMessage<Error>(HasSubstr("the array f holds float32 values; integers are needed")));
  EXPECT_THAT([&] { file.int32_scalar("f"); },
              ThrowsMessage<Error>(HasSubstr("has 2 values; a single number is needed")));
  EXPECT_THAT([&] { file.floats("f", 1, 2); },
              ThrowsMessage<Error>(HasSubstr("has 2 slices, too few for 2 from 1 on")));
  EXPECT_THAT([&] { file.floats("f", 3, 0); }, ThrowsMessage<Error>(HasSubstr("slices")));
  EXPECT_THAT([&] { file.floats("i", 0, 1); }, ThrowsMessage<Error>(HasSubstr("has 0 slices")));
}

TEST(NpzFile, LargeIntegersDoNotWrap) {
  const std::string header = write_npy_header(ArrayType::int64, std::vector<std::int64_t>{1});
  const std::string large = header + std::string("\0\0\0\0\1\0\0\0", 8);
  EXPECT_THAT(
      [&] {
        open(zip_of({{"a.npy", large}})).int32s("a");
      },
      ThrowsMessage<Error>(HasSubstr("holds 4294967296, which does not fit 32 bits")));
}

TEST(NpzFile, SaysWhatAnotherKindOfFileIs) {
  const auto refusal = [](const std::string& bytes, const std::string& message) {
    EXPECT_THAT([&] { open(bytes); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  refusal("", "x.npz is no .npz file, or only a part of one");
  refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer");
  refusal(npy_of({1, 2, 3}), "a single .npy array");
  EXPECT_THAT([] { NpzFile("/nowhere/a.npz"); }, ThrowsMessage<Error>(HasSubstr("/nowhere/a.npz")));
}

TEST(NpzFile, DamageIsFoundWhenVerified) {
  std::string archive = zip_of({{"a.npy", npy_of({1, 2, 3})}});
  open(archive).verify();
  const std::size_t last_value = local_header({"a.npy", 0, 0, 0}).size() + npy_of({1, 2, 3}).size() - 1;
  archive[last_value] ^= 1;
  EXPECT_THAT([&] { open(archive).verify(); },
              ThrowsMessage<Error>(HasSubstr("x.npz: the array a has the checksum")));
}

// Whatever the bytes, the answer is an Error or arrays that can be read.
void read_everything(const std::string& archive) {
  try {
    const NpzFile file = open(archive, 1 << 20);
    for (const std::string& name : file.names()) file.floats(name);
    file.verify();
  } catch (const Error&) {
  }
}

TEST(NpzFile, ATruncatedFileIsAlwaysRefused) {
  const std::string archive = zip_of({{"a.npy", npy_of({1, 2})}, {"b.npy", npy_of({3})}});
  for (std::size_t size = 0; size < archive.size(); ++size)
    EXPECT_THROW(open(archive.substr(0, size)), Error) << size << " bytes";
}

TEST(NpzFile, NoDamagedByteDoesHarm) {
  for (const std::string& sound : {zip_of({{"a.npy", npy_of({1, 2})}, {"b.npy", npy_of({3})}}),
                                   deflated_zip("a.npy", npy_of({1, 2}), npy_of({1, 2}).size())}) {
    for (std::size_t at = 0; at < sound.size(); ++at)
      for (const int flip : {1, 0x80, 0xff}) {
        std::string damaged = sound;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        read_everything(damaged);
      }
  }
}

TEST(NpzFile, RefusesHostileArchives) {
  const auto refusal = [](const std::string& archive, const std::string& message) {
    EXPECT_THAT([&] { open(archive); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  const std::string array = npy_of({1});
  refusal(zip_of({{"a.npy", array}, {"a.npy", array}}), "two arrays named a.npy");

  const StoredEntry entry{"a.npy", array.size(), test::crc_of(array), 0};
  const StoredEntry same_bytes{"b.npy", array.size(), test::crc_of(array), 0};
  const std::string body = local_header(entry) + array;
  refusal(body + central_directory(std::vector{entry, same_bytes}, body.size()), "overlaps");

  StoredEntry outside = entry;
  outside.size = body.size() + 1;
  refusal(body + central_directory(std::vector{outside}, body.size()), "outside the file");
  outside.size = std::numeric_limits<std::uint64_t>::max();
  refusal(body + central_directory(std::vector{outside}, body.size()), "outside the file");
  outside = entry;
  outside.header_offset = std::numeric_limits<std::uint64_t>::max() - 3;
  refusal(body + central_directory(std::vector{outside}, body.size()), "does not begin where");
  refusal(body + central_directory(std::vector{entry}, std::numeric_limits<std::uint64_t>::max() - 50),
          "zip64 directory is not where it should be");

  std::string encrypted = body + central_directory(std::vector{entry}, body.size());
  encrypted[body.size() + 8] = 1;
  refusal(encrypted, "encrypted");
  std::string packed = body + central_directory(std::vector{entry}, body.size());
  packed[body.size() + 10] = 12;
  refusal(packed, "packed by method 12");
}

TEST(NpzFile, DeflatedEntriesCannotExplode) {
  const std::string array = npy_of(std::vector<std::int32_t>(10000));
  const std::string honest = deflated_zip("a.npy", array, array.size());
  EXPECT_EQ(open(honest).int32s("a").size(), 10000U);
  EXPECT_THAT([&] { open(honest, 1000).array("a"); }, ThrowsMessage<Error>(HasSubstr("exceeds 1000 bytes")));
  EXPECT_THAT([&] { open(deflated_zip("a.npy", array, std::uint64_t{1} << 40)); },
              ThrowsMessage<Error>(HasSubstr("more than deflate can")));
  EXPECT_THAT([&] { open(deflated_zip("a.npy", array, array.size() - 1)).array("a"); },
              ThrowsMessage<Error>(HasSubstr("does not inflate")));
  EXPECT_THAT([&] { open(deflated_zip("a.npy", array, array.size() + 1)).array("a"); },
              ThrowsMessage<Error>(HasSubstr("does not inflate")));
}

}  // namespace
}  // namespace sinkscope
