// The directory of a zip archive that anybody may have written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

struct ZipEntry {
  std::string name;
  bool deflated = false;  ///< else stored
  std::uint32_t crc = 0;
  std::uint64_t size = 0;           ///< of the content, inflated; no more than deflate can make of `data`
  std::span<const std::byte> data;  ///< as it lies in the archive
};

/// The entries in the order of the directory. Every `data` lies within `archive` and none overlaps another.
/// `where` names the file in errors. Throws Error for anything broken, encrypted, spread over disks or packed
/// by a method other than deflate, and for names that occur twice.
std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> archive, const std::string& where);

/// The content of a deflated entry, exactly entry.size bytes. Throws Error.
std::vector<std::byte> inflate_entry(const ZipEntry& entry, const std::string& where);

}  // namespace sinkscope
