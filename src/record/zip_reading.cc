#include "record/zip_reading.h"

#include <sinkscope/error.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "record/little_endian.h"
#include "record/zip_format.h"

namespace sinkscope {
namespace {

// Deflate spends at least one bit on 258 bytes, two in practice: no stream grows more than 1032-fold.
constexpr std::uint64_t most_inflation = 1032;
constexpr std::size_t longest_comment = 0xffff;

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

// One directory record on the way to a ZipEntry.
struct DirectoryRecord {
  ZipEntry entry;
  std::uint64_t packed_size = 0;
  std::uint64_t header_offset = 0;
  std::uint64_t data_end = 0;
};

class ArchiveReader {
 public:
  ArchiveReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::vector<ZipEntry> read() {
    const Directory directory = find_directory();
    // Each record takes 46 bytes or more, so a false count cannot cost more than the file's own length.
    if (directory.entries > directory.size / zip::central_size)
      fail("its directory is too short for its number of entries");
    std::vector<DirectoryRecord> records;
    std::uint64_t at = directory.offset;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
      records.push_back(read_record(at, directory.offset + directory.size));
      locate_data(records.back(), directory.offset);
    }
    refuse_overlaps(records);
    std::vector<ZipEntry> entries;
    std::set<std::string_view> names;
    entries.reserve(records.size());
    for (DirectoryRecord& record : records) {
      entries.push_back(std::move(record.entry));
      if (!names.insert(entries.back().name).second)
        throw Error("{} holds two arrays named {}", where_, entries.back().name);
    }
    return entries;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error("{} is a broken .npz file: {}", where_, what);
  }

  std::uint64_t number(std::uint64_t offset, std::size_t size) const {
    const std::optional<std::uint64_t> value = little_endian(text_, offset, size);
    if (!value) fail("it ends too early");
    return *value;
  }
  std::uint16_t u16(std::uint64_t offset) const { return static_cast<std::uint16_t>(number(offset, 2)); }
  std::uint32_t u32(std::uint64_t offset) const { return static_cast<std::uint32_t>(number(offset, 4)); }
  std::uint64_t u64(std::uint64_t offset) const { return number(offset, 8); }

  [[noreturn]] void fail_without_end() const {
    if (text_.starts_with("\x93NUMPY"))
      throw Error("{} is a single .npy array; an .npz archive is needed (numpy.savez)", where_);
    if (text_.starts_with("version https://git-lfs"))
      throw Error("{} is a Git LFS pointer, not the file itself; fetch it with git lfs pull", where_);
    throw Error("{} is no .npz file, or only a part of one: it does not end with a zip directory", where_);
  }

  // The end record stands behind the directory, followed only by a comment of the length that it tells.
  std::uint64_t find_end() const {
    if (text_.size() < zip::end_size) fail_without_end();
    const std::size_t last = text_.size() - zip::end_size;
    const std::size_t first = last - std::min(last, longest_comment);
    for (std::size_t at = last + 1; at-- > first;)
      if (u32(at) == zip::end_signature && u16(at + 20) == text_.size() - at - zip::end_size) return at;
    fail_without_end();
  }

  Directory find_directory() const {
    const std::uint64_t end = find_end();
    std::uint64_t limit = end;
    Directory directory{u16(end + 10), u32(end + 12), u32(end + 16)};
    if (end >= zip::locator_size && u32(end - zip::locator_size) == zip::locator_signature) {
      const std::uint64_t end64 = u64(end - zip::locator_size + 8);
      if (end64 > end - zip::locator_size || end - zip::locator_size - end64 < zip::end64_size ||
          u32(end64) != zip::end64_signature)
        fail("its zip64 directory is not where it should be");
      directory = {u64(end64 + 32), u64(end64 + 40), u64(end64 + 48)};
      limit = end64;
    }
    if (directory.offset > limit || directory.size > limit - directory.offset)
      fail("its directory lies outside the file");
    return directory;
  }

  // The record at `at`, which moves behind it; all of it must end by `limit`.
  DirectoryRecord read_record(std::uint64_t& at, std::uint64_t limit) const {
    if (limit - at < zip::central_size || u32(at) != zip::central_signature) fail("its directory is damaged");
    const std::uint64_t name_size = u16(at + 28), extra_size = u16(at + 30), comment_size = u16(at + 32);
    const std::uint64_t record_size = zip::central_size + name_size + extra_size + comment_size;
    if (limit - at < record_size) fail("its directory is damaged");
    DirectoryRecord record;
    record.entry.name =
        text_.substr(static_cast<std::size_t>(at) + zip::central_size, static_cast<std::size_t>(name_size));
    if ((u16(at + 8) & zip::flag_encrypted) != 0)
      throw Error("{} is encrypted; save it without a password", name_of_entry(record));
    const std::uint16_t method = u16(at + 10);
    if (method != zip::method_stored && method != zip::method_deflated)
      throw Error("{} is packed by method {}; save it with numpy.savez or numpy.savez_compressed",
                  name_of_entry(record), method);
    record.entry.deflated = method == zip::method_deflated;
    record.entry.crc = u32(at + 16);
    record.packed_size = u32(at + 20);
    record.entry.size = u32(at + 24);
    record.header_offset = u32(at + 42);
    read_extra64(record, at + zip::central_size + name_size, extra_size);
    at += record_size;
    return record;
  }

  // The 64-bit values of those fields that are all ones, in this order.
  void read_extra64(DirectoryRecord& record, std::uint64_t at, std::uint64_t size) const {
    const std::uint64_t end = at + size;
    while (end - at >= 4) {
      const std::uint16_t id = u16(at);
      const std::uint64_t length = u16(at + 2);
      at += 4;
      if (length > end - at) fail("an extra field of its directory is damaged");
      if (id == zip::extra64_id) {
        std::uint64_t value_at = at;
        for (std::uint64_t* field : {&record.entry.size, &record.packed_size, &record.header_offset}) {
          if (*field != zip::in_extra32) continue;
          if (at + length - value_at < 8) fail("an extra field of its directory is damaged");
          *field = u64(value_at);
          value_at += 8;
        }
        return;
      }
      at += length;
    }
  }

  // Fills in data and data_end; all entries must end by `limit`, where the directory begins.
  void locate_data(DirectoryRecord& record, std::uint64_t limit) const {
    const std::uint64_t header = record.header_offset;
    if (header > limit || limit - header < zip::local_size || u32(header) != zip::local_signature)
      throw Error("{} does not begin where the directory says", name_of_entry(record));
    const std::uint64_t data = header + zip::local_size + u16(header + 26) + u16(header + 28);
    if (data > limit || record.packed_size > limit - data)
      throw Error("{} lies outside the file", name_of_entry(record));
    if (!record.entry.deflated && record.entry.size != record.packed_size)
      throw Error("{} is stored, yet its two sizes {} and {} differ", name_of_entry(record),
                  record.packed_size, record.entry.size);
    if (record.entry.deflated && record.entry.size / most_inflation > record.packed_size)
      throw Error("{} claims to inflate from {} to {} bytes, more than deflate can", name_of_entry(record),
                  record.packed_size, record.entry.size);
    record.data_end = data + record.packed_size;
    record.entry.data =
        std::as_bytes(std::span(text_))
            .subspan(static_cast<std::size_t>(data), static_cast<std::size_t>(record.packed_size));
  }

  // Entries that share bytes make a small file inflate without end.
  void refuse_overlaps(const std::vector<DirectoryRecord>& records) const {
    std::vector<const DirectoryRecord*> by_offset;
    for (const DirectoryRecord& record : records) by_offset.push_back(&record);
    std::sort(by_offset.begin(), by_offset.end(), [](const DirectoryRecord* a, const DirectoryRecord* b) {
      return a->header_offset < b->header_offset;
    });
    for (std::size_t i = 1; i < by_offset.size(); ++i)
      if (by_offset[i]->header_offset < by_offset[i - 1]->data_end)
        throw Error("{} overlaps another one", name_of_entry(*by_offset[i]));
  }

  std::string name_of_entry(const DirectoryRecord& record) const {
    return fmt::format("{}: the entry {}", where_, record.entry.name);
  }

  std::string_view text_;
  const std::string& where_;
};

// zlib counts in 32 bits.
uInt next_chunk(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> archive, const std::string& where) {
  return ArchiveReader({reinterpret_cast<const char*>(archive.data()), archive.size()}, where).read();
}

std::vector<std::byte> inflate_entry(const ZipEntry& entry, const std::string& where) {
  std::vector<std::byte> content(static_cast<std::size_t>(entry.size));
  z_stream stream{};
  constexpr int raw_deflate = -15;  // no zlib header, largest window
  if (inflateInit2(&stream, raw_deflate) != Z_OK) throw Error("{}: no memory to inflate it", where);
  std::size_t taken = 0, made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(entry.data.data() + taken));
    stream.avail_in = next_chunk(entry.data.size() - taken);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + made);
    stream.avail_out = next_chunk(content.size() - made);
    const uInt offered = stream.avail_in, room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    taken += offered - stream.avail_in;
    made += room - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || made != content.size())
    throw Error("{} does not inflate to the {} bytes it should; the file is damaged", where, entry.size);
  return content;
}

}  // namespace sinkscope
