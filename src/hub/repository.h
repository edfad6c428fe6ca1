// The hub's answer to "what does this repository hold at this revision?".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// How a file's checksum is reckoned: Git's own of a file in the repository, SHA-256 of one kept beside it
/// (Git LFS, Xet).
enum class ChecksumKind { git_sha1, sha256 };

struct RemoteFile {
  std::string name;  // relative to the repository, parts separated by '/'
  std::uint64_t size = 0;
  ChecksumKind kind = ChecksumKind::git_sha1;
  std::string checksum;  // lower-case hexadecimal; also the name of the file's blob in the cache
};

struct RemoteRepository {
  std::string commit;
  std::vector<RemoteFile> files;
};

/// The most bytes of an answer that are read; 100,000 files take some 25 MB.
inline constexpr std::size_t largest_answer = std::size_t{64} << 20;

/// Reads the JSON of GET /api/models/ID/revision/REV?blobs=true. `where` names it in errors. Throws Error
/// when it is broken, gives no checksum of a file, or names a file that could lie outside its folder.
RemoteRepository parse_repository(std::string_view answer, const std::string& where);

/// A relative path without empty, "." or ".." parts, backslashes or control characters, of bounded length.
bool is_safe_file_name(std::string_view name);

}  // namespace sinkscope
