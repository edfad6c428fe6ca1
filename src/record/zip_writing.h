// The records of a zip archive around stored entries, all in zip64 form.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sinkscope {

struct StoredEntry {
  std::string name;
  std::uint64_t size = 0;           ///< bytes of content
  std::uint32_t crc = 0;            ///< CRC-32 of the content
  std::uint64_t header_offset = 0;  ///< of its local header in the archive
};

/// What stands before the entry's content.
std::string local_header(const StoredEntry& entry);

/// What stands behind the last entry's content; `offset` is where it begins.
std::string central_directory(std::span<const StoredEntry> entries, std::uint64_t offset);

}  // namespace sinkscope
