#include "record/zip_writing.h"

#include "record/little_endian.h"
#include "record/zip_format.h"

namespace sinkscope {
namespace {

constexpr std::uint16_t version_needed = 45;                          // zip64
constexpr std::uint16_t version_made_by = (3 << 8) | version_needed;  // 3: attributes are Unix modes
constexpr std::uint32_t regular_file_0644 = 0100644U << 16;
// 1980-01-01 00:00:00, the earliest the format knows: equal content gives equal files.
constexpr std::uint16_t dos_time = 0;
constexpr std::uint16_t dos_date = (0 << 9) | (1 << 5) | 1;

class Record {
 public:
  Record& u16(std::uint16_t value) { return append_little_endian(bytes_, value), *this; }
  Record& u32(std::uint32_t value) { return append_little_endian(bytes_, value), *this; }
  Record& u64(std::uint64_t value) { return append_little_endian(bytes_, value), *this; }
  Record& text(const std::string& value) { return bytes_.append(value), *this; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The fields that local header and directory record have in common: version to length of the name.
void append_common(Record& record, const StoredEntry& entry) {
  record.u16(version_needed).u16(0).u16(zip::method_stored).u16(dos_time).u16(dos_date).u32(entry.crc);
  record.u32(zip::in_extra32).u32(zip::in_extra32).u16(static_cast<std::uint16_t>(entry.name.size()));
}

}  // namespace

std::string local_header(const StoredEntry& entry) {
  Record record;
  record.u32(zip::local_signature);
  append_common(record, entry);
  record.u16(20).text(entry.name);
  record.u16(zip::extra64_id).u16(16).u64(entry.size).u64(entry.size);
  return record.bytes();
}

std::string central_directory(std::span<const StoredEntry> entries, std::uint64_t offset) {
  Record record;
  for (const StoredEntry& entry : entries) {
    record.u32(zip::central_signature).u16(version_made_by);
    append_common(record, entry);
    // Extra field, comment, disk, internal and external attributes, offset.
    record.u16(28).u16(0).u16(0).u16(0).u32(regular_file_0644).u32(zip::in_extra32).text(entry.name);
    record.u16(zip::extra64_id).u16(24).u64(entry.size).u64(entry.size).u64(entry.header_offset);
  }
  const std::uint64_t size = record.bytes().size();
  const std::uint64_t count = entries.size();
  // The size of this record does not count its first twelve bytes.
  record.u32(zip::end64_signature).u64(zip::end64_size - 12).u16(version_made_by).u16(version_needed);
  record.u32(0).u32(0).u64(count).u64(count).u64(size).u64(offset);
  record.u32(zip::locator_signature).u32(0).u64(offset + size).u32(1);
  record.u32(zip::end_signature).u16(0).u16(0).u16(zip::in_extra16).u16(zip::in_extra16);
  record.u32(zip::in_extra32).u32(zip::in_extra32).u16(0);
  return record.bytes();
}

}  // namespace sinkscope
