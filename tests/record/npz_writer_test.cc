#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "record/python.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using test::run_python;
using testing::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_in;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// Some of everything: growing arrays of all types, whole arrays, scalars, arrays without elements.
void write_example(const std::filesystem::path& path) {
  NpzWriter writer(path);
  writer.declare("states", ArrayType::int32, {3});
  writer.declare("column_sum", ArrayType::float16, {2, 2});
  writer.add("mask_id", {}, std::vector<std::int32_t>{126336});
  writer.declare("confidence", ArrayType::float32, {3});
  writer.declare("masked_keys", ArrayType::uint8, {2});
  writer.declare("queries", ArrayType::uint16, {2});
  writer.declare("never", ArrayType::float32, {7});
  writer.add("hidden_norm", ArrayType::float32, {1, 2}, std::vector<float>{0.5F, -1});
  writer.declare("nothing", ArrayType::float16, {0});
  for (int step = 0; step < 4; ++step) {
    const float base = static_cast<float>(step);
    writer.append("states", std::vector<std::int32_t>{step, -1, 2 * step});
    writer.append("column_sum", std::vector<float>{base, base / 3, 1e6F, nan_value});
    writer.append("confidence", std::vector<float>{base / 7, -nan_value, 1e-40F});
    writer.append("masked_keys", std::vector<std::uint8_t>{0, 1});
    writer.append("queries", std::vector<std::uint16_t>{0, 65535});
    writer.append("nothing", std::vector<float>{});
  }
  writer.finish();
}

TEST(NpzWriter, NumpyReadsWhatWeWrite) {
  REQUIRE_NUMPY(python);
  const TemporaryFolder folder;
  write_example(folder / "a.npz");
  const auto result = run_python(*python, folder, R"(
z = np.load('a.npz')
assert z.files == ['states', 'column_sum', 'mask_id', 'confidence', 'masked_keys', 'queries', 'never', 'hidden_norm', 'nothing']
def same(name, wanted, dtype):
    a = z[name]
    assert a.dtype == dtype and a.shape == np.shape(wanted), (name, a.dtype, a.shape)
    assert a.tobytes() == np.array(wanted, dtype=dtype).tobytes(), (name, a)
t = np.arange(4, dtype='f4')
same('states', [[i, -1, 2 * i] for i in range(4)], 'int32')
with np.errstate(over='ignore'):
    same('column_sum', np.stack([t, t / np.float32(3), np.full(4, 1e6), np.full(4, np.nan)], 1).astype('f2').reshape(4, 2, 2), 'float16')
same('mask_id', np.int32(126336), 'int32')
same('confidence', np.stack([t / np.float32(7), np.full(4, np.nan), np.full(4, np.float32(1e-40))], 1).astype('f4'), 'float32')
same('masked_keys', [[0, 1]] * 4, 'uint8')
same('queries', [[0, 65535]] * 4, 'uint16')
same('never', np.zeros((0, 7)), 'float32')
same('hidden_norm', [[.5, -1]], 'float32')
same('nothing', np.zeros((4, 0)), 'float16')
)");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST(NpzWriter, ArraysAreByteForByteThoseOfNumpy) {
  REQUIRE_NUMPY(python);
  const TemporaryFolder folder;
  write_example(folder / "a.npz");
  const auto result = run_python(*python, folder, R"(
import io, zipfile
z = zipfile.ZipFile('a.npz')
assert z.testzip() is None
for info in z.infolist():
    assert info.date_time == (1980, 1, 1, 0, 0, 0) and info.compress_type == 0 and info.extract_version == 45
    written = z.read(info)
    again = io.BytesIO()
    np.save(again, np.load(io.BytesIO(written)))
    assert written == again.getvalue(), info.filename
)");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST(NpzWriter, EqualCallsGiveEqualBytes) {
  const TemporaryFolder folder;
  write_example(folder / "a.npz");
  write_example(folder / "b.npz");
  EXPECT_EQ(content_of(folder / "a.npz"), content_of(folder / "b.npz"));
}

TEST(NpzWriter, SlicesMayBeLargerThanItsBuffers) {
  const TemporaryFolder folder;
  std::vector<float> map(700 * 700);
  std::iota(map.begin(), map.end(), 0.0F);
  NpzWriter writer(folder / "maps.npz");
  writer.declare("map", ArrayType::float32, {700, 700});
  writer.append("map", map);
  writer.append("map", map);
  writer.finish();
  const NpzFile file(folder / "maps.npz");
  EXPECT_THAT(file.array("map").shape, ElementsAre(2, 700, 700));
  EXPECT_EQ(file.floats("map", 1, 1), map);
  file.verify();
}

TEST(NpzWriter, AppearsOnlyWhenFinished) {
  const TemporaryFolder folder;
  {
    NpzWriter writer(folder / "a.npz");
    writer.declare("x", ArrayType::int32, {1});
    writer.append("x", std::vector<std::int32_t>{1});
    EXPECT_FALSE(std::filesystem::exists(folder / "a.npz"));
    writer.finish();
    EXPECT_TRUE(std::filesystem::exists(folder / "a.npz"));
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a.npz"));
}

TEST(NpzWriter, AnUnfinishedWriterLeavesNothingAndSparesTheOldFile) {
  const TemporaryFolder folder;
  testing::write_file(folder / "a.npz", "old");
  {
    NpzWriter writer(folder / "a.npz");
    writer.declare("x", ArrayType::int32, {1});
    writer.append("x", std::vector<std::int32_t>{1});
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a.npz"));
  EXPECT_EQ(content_of(folder / "a.npz"), "old");
}

TEST(NpzWriter, TwoWritersOfOneNameDoNotMix) {
  const TemporaryFolder folder;
  NpzWriter first(folder / "a.npz");
  NpzWriter second(folder / "a.npz");
  first.add("x", {1}, std::vector<std::int32_t>{1});
  second.add("x", {1}, std::vector<std::int32_t>{2});
  second.finish();
  first.finish();
  EXPECT_THAT(NpzFile(folder / "a.npz").int32s("x"), ElementsAre(1));
}

TEST(NpzWriter, IsReadableByOthersAsTheUserAllows) {
  const TemporaryFolder folder;
  const mode_t old = ::umask(022);
  write_example(folder / "a.npz");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a.npz").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
}

TEST(NpzWriter, RefusesWrongUse) {
  const TemporaryFolder folder;
  NpzWriter writer(folder / "a.npz");
  writer.declare("x", ArrayType::float16, {2});
  writer.declare("i", ArrayType::int32, {1});
  EXPECT_THAT([&] { writer.append("x", std::vector<float>{1}); },
              ThrowsMessage<Error>(HasSubstr("a slice of x has 2 values, not 1")));
  EXPECT_THAT(
      [&] {
        writer.append("x", std::vector<std::int32_t>{1, 2});
      },
      ThrowsMessage<Error>(HasSubstr("x takes float16, not int32")));
  EXPECT_THAT([&] { writer.append("i", std::vector<float>{1}); },
              ThrowsMessage<Error>(HasSubstr("i takes int32, not floats")));
  EXPECT_THAT([&] { writer.append("y", std::vector<float>{1}); },
              ThrowsMessage<Error>(HasSubstr("y was not declared")));
  EXPECT_THAT([&] { writer.declare("x", ArrayType::int32, {}); },
              ThrowsMessage<Error>(HasSubstr("x is declared twice")));
  EXPECT_THAT([&] { writer.declare("../x", ArrayType::int32, {}); },
              ThrowsMessage<Error>(HasSubstr("'../x' is no name")));
  EXPECT_THAT([&] { writer.declare("", ArrayType::int32, {}); },
              ThrowsMessage<Error>(HasSubstr("'' is no name")));
  EXPECT_THAT([&] { writer.declare("n", ArrayType::int32, {-1}); },
              ThrowsMessage<Error>(HasSubstr("negative or too large")));
  EXPECT_THAT(
      [&] {
        writer.declare("n", ArrayType::int32, {1LL << 40, 1LL << 40});
      },
      ThrowsMessage<Error>(HasSubstr("negative or too large")));
  writer.append("x", std::vector<float>{1, 2});
  writer.finish();
  EXPECT_THAT(
      [&] {
        writer.append("x", std::vector<float>{1, 2});
      },
      ThrowsMessage<Error>(HasSubstr("is finished")));
  EXPECT_THAT([&] { writer.finish(); }, ThrowsMessage<Error>(HasSubstr("is finished")));
  EXPECT_THAT(NpzFile(folder / "a.npz").array("x").shape, ElementsAre(1, 2))
      << "refused slices leave no trace";
}

// While it lives no file of this process grows beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(NpzWriter, ADiskThatFillsWhileAppendingIsNamed) {
  const TemporaryFolder folder;
  {
    NpzWriter writer(folder / "a.npz");
    writer.declare("x", ArrayType::float32, {1000});
    const FileSizeLimit limit(10000);
    writer.append("x", std::vector<float>(1000));
    writer.append("x", std::vector<float>(1000));
    EXPECT_THAT([&] { writer.append("x", std::vector<float>(1000)); },
                ThrowsMessage<Error>("cannot write " + (folder / "a.npz").string() + ": File too large"));
    EXPECT_THAT([&] { writer.finish(); }, ThrowsMessage<Error>(HasSubstr("writing it has failed")));
  }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(NpzWriter, ADiskThatFillsAtTheEndIsNamed) {
  const TemporaryFolder folder;
  {
    NpzWriter writer(folder / "a.npz");
    for (const char* name : {"x", "y"})
      writer.add(name, ArrayType::float32, {2000}, std::vector<float>(2000));
    const FileSizeLimit limit(10000);
    EXPECT_THAT([&] { writer.finish(); }, ThrowsMessage<Error>(HasSubstr("a.npz: File too large")));
  }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(NpzWriter, APlaceThatCannotBeWrittenIsNamedAtOnce) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { NpzWriter(folder / "none/a.npz"); },
              ThrowsMessage<Error>(HasSubstr("none/a.npz: No such file or directory")));
  testing::write_file(folder / "file", "");
  EXPECT_THAT([&] { NpzWriter(folder / "file/a.npz"); }, ThrowsMessage<Error>(HasSubstr("Not a directory")));
  std::filesystem::create_directory(folder / "folder.npz");
  EXPECT_THAT([&] { NpzWriter(folder / "folder.npz"); }, ThrowsMessage<Error>(HasSubstr("it is a folder")));
}

// Root may write everywhere: such a process becomes somebody else for a while.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

TEST(NpzWriter, AFolderWithoutPermissionIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  {
    const Unprivileged user;
    EXPECT_THAT([&] { NpzWriter(folder / "a.npz"); },
                ThrowsMessage<Error>("cannot write " + (folder / "a.npz").string() + ": Permission denied"));
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace sinkscope
