// Zip archives in memory, sound or hostile.
#pragma once

#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "record/npy_header.h"
#include "record/zip_writing.h"

namespace sinkscope::test {

inline std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

/// An int32 array as .npy.
inline std::string npy_of(const std::vector<std::int32_t>& values) {
  return write_npy_header(ArrayType::int32,
                          std::vector<std::int64_t>{static_cast<std::int64_t>(values.size())}) +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int32_t));
}

using NamedContent = std::pair<std::string, std::string>;

/// Stored entries, as NpzWriter lays them out.
inline std::string zip_of(const std::vector<NamedContent>& contents) {
  std::string archive;
  std::vector<StoredEntry> entries;
  for (const auto& [name, content] : contents) {
    entries.push_back({name, content.size(), crc_of(content), archive.size()});
    archive += local_header(entries.back()) + content;
  }
  return archive + central_directory(entries, archive.size());
}

inline std::string deflated(const std::string& content) {
  std::string packed(::compressBound(content.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// One deflated entry that claims to inflate to `claimed` bytes.
inline std::string deflated_zip(const std::string& name, const std::string& content, std::uint64_t claimed) {
  const std::string packed = deflated(content);
  const StoredEntry entry{name, packed.size(), crc_of(content), 0};
  const std::string body = local_header(entry) + packed;
  std::string directory = central_directory(std::span(&entry, 1), body.size());
  directory[10] = 8;  // method
  const std::size_t extra = 46 + name.size() + 4;
  for (std::size_t i = 0; i < 8; ++i) directory[extra + i] = static_cast<char>(claimed >> (8 * i) & 0xff);
  return body + directory;
}

}  // namespace sinkscope::test
