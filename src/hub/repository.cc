#include "hub/repository.h"

#include <sinkscope/error.h>

#include <map>
#include <set>

#include "base/json.h"
#include "checkpoint/hub_cache.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

constexpr std::size_t most_files = 100'000;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 44;  // 16 TiB; the sum of most_files fits 64 bits
constexpr std::size_t longest_path = 1024;
constexpr std::size_t longest_part = 200;  // file systems take 255 bytes

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object()) throw Error("{} should be an object, not {}", where, json_type_name(object));
  const auto found = object.find(key);
  if (found == object.end())
    throw Error("{} has no {}; an endpoint that answers like huggingface.co would give it", where, key);
  return *found;
}

std::string checksum(const Json& object, const char* key, std::size_t digits, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_string() || !is_hexadecimal(value.get_ref<const std::string&>(), digits))
    throw Error("{}: {} should be {} hexadecimal digits, not {}", where, key, digits, shown(value));
  return value.get<std::string>();
}

std::uint64_t file_size(const Json& object, const std::string& where) {
  const Json& value = member(object, "size", where);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest_file)
    throw Error("{}: size is {}, no number of bytes that a file has", where, shown(value));
  return value.get<std::uint64_t>();
}

RemoteFile parse_file(const Json& entry, const std::string& where) {
  const Json& name = member(entry, "rfilename", where);
  if (!name.is_string() || !is_safe_file_name(name.get_ref<const std::string&>()))
    throw Error("{} names a file {}; a plain relative path would be right", where, shown(name));
  RemoteFile file;
  file.name = name.get<std::string>();
  const std::string its = where + ": " + file.name;
  const auto large = entry.find("lfs");
  if (large != entry.end() && !large->is_null()) {
    file.kind = ChecksumKind::sha256;
    file.checksum = checksum(*large, "sha256", 64, its);
    file.size = file_size(*large, its);
  } else {
    file.checksum = checksum(entry, "blobId", 40, its);
    file.size = file_size(entry, its);
  }
  return file;
}

// One name names one file, and files with one checksum are the same.
void check_consistent(const std::vector<RemoteFile>& files, const std::string& where) {
  std::set<std::string_view> names;
  std::map<std::string_view, std::uint64_t> sizes;
  for (const RemoteFile& file : files) {
    if (!names.insert(file.name).second) throw Error("{} names the file {} twice", where, file.name);
    const auto [known, added] = sizes.emplace(file.checksum, file.size);
    if (!added && known->second != file.size)
      throw Error("{} gives two sizes, {} and {}, to the checksum {}", where, known->second, file.size,
                  file.checksum);
  }
}

}  // namespace

bool is_safe_file_name(std::string_view name) {
  if (name.empty() || name.size() > longest_path) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    // 0xC2 0x80..0x9F are the control characters U+0080 to U+009F.
    const bool second_control_set =
        c == 0xC2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xA0;
    if (c < 0x20 || c == 0x7F || c == '\\' || second_control_set) return false;
  }
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > longest_part) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

RemoteRepository parse_repository(std::string_view answer, const std::string& where) {
  if (answer.size() > largest_answer) throw Error("{} is longer than {} bytes", where, largest_answer);
  const Json root = parse_json(answer, where);
  RemoteRepository repository;
  const Json& commit = member(root, "sha", where);
  if (!commit.is_string() || !is_commit(commit.get_ref<const std::string&>()))
    throw Error("{}: sha should be a commit of 40 hexadecimal digits, not {}", where, shown(commit));
  repository.commit = commit.get<std::string>();
  const Json& siblings = member(root, "siblings", where);
  if (!siblings.is_array() || siblings.size() > most_files)
    throw Error("{}: siblings should be an array of at most {} files, it is {}", where, most_files,
                siblings.is_array() ? "longer" : json_type_name(siblings));
  for (const Json& entry : siblings) repository.files.push_back(parse_file(entry, where));
  check_consistent(repository.files, where);
  return repository;
}

}  // namespace sinkscope
