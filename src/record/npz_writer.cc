// Writing .npz: arrays grow in files of their own and are put together at the end.
#include <fcntl.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "base/half.h"
#include "base/output_file.h"
#include "record/npy_header.h"
#include "record/zip_writing.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t convert_at_once = std::size_t{1} << 16;  // elements
constexpr std::size_t copy_at_once = std::size_t{1} << 20;     // bytes
constexpr std::size_t longest_name = 200;

struct Entry {
  std::string name;
  ArrayType type = ArrayType::float32;
  std::vector<std::int64_t> slice_shape;
  std::size_t slice_count = 0;  // elements of a slice
  bool growing = false;         // the shape begins with the number of slices
  std::int64_t slices = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  // of the bytes so far
};

std::uint32_t crc_of(std::uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Makes NAME.PID-N.tmp beside `path`, for the first N that is free.
fs::path make_temporary_folder(const fs::path& path) {
  for (int n = 0;; ++n) {
    fs::path folder = path;
    folder += fmt::format(".{}-{}.tmp", ::getpid(), n);
    if (::mkdir(folder.c_str(), 0755) == 0) return folder;
    if (errno != EEXIST) fail_to_write(path.string());
  }
}

// float32 as bytes, with one NaN: the sign of a computed NaN depends on the processor's path.
void append_float32(std::vector<std::byte>& bytes, std::span<const float> values) {
  constexpr std::uint32_t quiet_nan = 0x7fc00000;
  bytes.resize(values.size() * sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = std::isnan(values[i]) ? quiet_nan : std::bit_cast<std::uint32_t>(values[i]);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

void append_float16(std::vector<std::byte>& bytes, std::span<const float> values) {
  bytes.resize(values.size() * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = half_from_float(values[i]);
    std::memcpy(bytes.data() + i * sizeof half, &half, sizeof half);
  }
}

}  // namespace

struct NpzWriter::State {
  fs::path path;
  fs::path folder;  // empty once there is nothing to remove
  std::vector<Entry> entries;
  std::map<std::string, std::size_t, std::less<>> by_name;
  std::vector<std::byte> buffer;
  bool usable = true;  // false after finish and after a failure

  ~State() {
    std::error_code ignored;
    if (!folder.empty()) fs::remove_all(folder, ignored);
  }

  fs::path spill(std::size_t index) const { return folder / fmt::format("array-{}", index); }

  void check_usable() const {
    if (!usable)
      throw Error("{} takes no more arrays: it is finished, or writing it has failed", path.string());
  }

  Entry& find(const std::string& name) {
    check_usable();
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw Error("{}: the array {} was not declared", path.string(), name);
    return entries[found->second];
  }

  Entry& declare(const std::string& name, ArrayType type, std::vector<std::int64_t> shape, bool growing) {
    check_usable();
    const bool proper =
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
        std::string::npos;
    if (name.empty() || name.size() > longest_name || !proper)
      throw Error("{}: '{}' is no name of an array; letters, digits and _ make one", path.string(), name);
    const std::optional<std::uint64_t> count = element_count(shape);
    if (!count) throw Error("{}: the shape of {} is negative or too large", path.string(), name);
    if (!by_name.emplace(name, entries.size()).second)
      throw Error("{}: the array {} is declared twice", path.string(), name);
    return entries.emplace_back(
        Entry{name, type, std::move(shape), static_cast<std::size_t>(*count), growing, 0, 0, 0});
  }

  // Adds one slice; `convert` turns a part of it into `buffer` or returns its bytes as they are.
  template <typename Value, typename Convert>
  void append(Entry& entry, std::span<const Value> slice, Convert&& bytes_of) {
    if (slice.size() != entry.slice_count)
      throw Error("{}: a slice of {} has {} values, not {}", path.string(), entry.name, entry.slice_count,
                  slice.size());
    usable = false;  // until it is known to be whole
    if (!slice.empty()) {
      const auto index = static_cast<std::size_t>(&entry - entries.data());
      OutputFile file(spill(index), O_WRONLY | O_CREAT | O_APPEND, path.string());
      while (!slice.empty()) {
        const std::span<const Value> part = slice.first(std::min(slice.size(), convert_at_once));
        const std::span<const std::byte> bytes = bytes_of(part);
        file.write(bytes);
        entry.crc = crc_of(entry.crc, bytes);
        entry.bytes += bytes.size();
        slice = slice.subspan(part.size());
      }
      file.close();
    }
    ++entry.slices;
    usable = true;
  }

  void append_floats(Entry& entry, std::span<const float> slice) {
    if (entry.type != ArrayType::float16 && entry.type != ArrayType::float32)
      throw Error("{}: {} takes {}, not floats", path.string(), entry.name, name_of(entry.type));
    append(entry, slice, [&](std::span<const float> part) -> std::span<const std::byte> {
      if (entry.type == ArrayType::float16)
        append_float16(buffer, part);
      else
        append_float32(buffer, part);
      return buffer;
    });
  }

  template <typename Integer>
  void append_integers(Entry& entry, std::span<const Integer> slice) {
    constexpr ArrayType own = sizeof(Integer) == 1   ? ArrayType::uint8
                              : sizeof(Integer) == 2 ? ArrayType::uint16
                                                     : ArrayType::int32;
    if (entry.type != own)
      throw Error("{}: {} takes {}, not {}", path.string(), entry.name, name_of(entry.type), name_of(own));
    append(entry, slice, [](std::span<const Integer> part) { return std::as_bytes(part); });
  }

  void copy_spill(std::size_t index, OutputFile& out) {
    const fs::path from = spill(index);
    // Read, not mapped: the pages of a mapping count as this process's memory.
    std::ifstream file(from, std::ios::binary);
    std::uint64_t copied = 0;
    buffer.resize(copy_at_once);
    while (file.read(reinterpret_cast<char*>(buffer.data()), copy_at_once) || file.gcount() > 0) {
      const auto count = static_cast<std::size_t>(file.gcount());
      out.write(std::span(buffer).first(count));
      copied += count;
    }
    if (copied != entries[index].bytes)
      throw Error("cannot write {}: its temporary file {} was changed by somebody else", path.string(),
                  from.string());
    ::unlink(from.c_str());  // so that the disk needs room for one array more, not for all
  }

  void assemble(OutputFile& out) {
    std::vector<StoredEntry> stored;
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      std::vector<std::int64_t> shape = entry.slice_shape;
      if (entry.growing) shape.insert(shape.begin(), entry.slices);
      const std::string header = write_npy_header(entry.type, shape);
      const auto header_crc = crc_of(0, std::as_bytes(std::span(header)));
      stored.push_back({entry.name + ".npy", header.size() + entry.bytes,
                        static_cast<std::uint32_t>(
                            crc32_combine(header_crc, entry.crc, static_cast<z_off_t>(entry.bytes))),
                        offset});
      const std::string local = local_header(stored.back());
      out.write(local);
      out.write(header);
      if (entry.bytes > 0) copy_spill(i, out);
      offset += local.size() + stored.back().size;
    }
    out.write(central_directory(stored, offset));
  }

  void finish() {
    check_usable();
    usable = false;
    const fs::path whole = folder / "whole";
    OutputFile out(whole, O_WRONLY | O_CREAT | O_TRUNC, path.string());
    assemble(out);
    out.sync();
    out.close();
    if (::rename(whole.c_str(), path.c_str()) != 0) fail_to_write(path.string());
    sync_folder(path.parent_path());
  }
};

NpzWriter::NpzWriter(fs::path path) : state_(std::make_unique<State>()) {
  if (fs::is_directory(path)) throw Error("cannot write {}: it is a folder", path.string());
  if (fs::exists(path) && !fs::is_regular_file(path))
    throw Error("cannot write {}: it is a device or a pipe; name a file", path.string());
  if (fs::is_symlink(path)) path = fs::weakly_canonical(path);  // the file it names is replaced, not the link
  state_->folder = make_temporary_folder(path);
  state_->path = std::move(path);
}

NpzWriter::~NpzWriter() = default;
NpzWriter::NpzWriter(NpzWriter&&) noexcept = default;
NpzWriter& NpzWriter::operator=(NpzWriter&&) noexcept = default;

const fs::path& NpzWriter::path() const { return state_->path; }

void NpzWriter::declare(const std::string& name, ArrayType type, std::vector<std::int64_t> slice_shape) {
  state_->declare(name, type, std::move(slice_shape), true);
}

void NpzWriter::append(const std::string& name, std::span<const float> slice) {
  state_->append_floats(state_->find(name), slice);
}
void NpzWriter::append(const std::string& name, std::span<const std::int32_t> slice) {
  state_->append_integers(state_->find(name), slice);
}
void NpzWriter::append(const std::string& name, std::span<const std::uint8_t> slice) {
  state_->append_integers(state_->find(name), slice);
}
void NpzWriter::append(const std::string& name, std::span<const std::uint16_t> slice) {
  state_->append_integers(state_->find(name), slice);
}

void NpzWriter::add(const std::string& name, ArrayType type, std::vector<std::int64_t> shape,
                    std::span<const float> values) {
  state_->append_floats(state_->declare(name, type, std::move(shape), false), values);
}
void NpzWriter::add(const std::string& name, std::vector<std::int64_t> shape,
                    std::span<const std::int32_t> values) {
  state_->append_integers(state_->declare(name, ArrayType::int32, std::move(shape), false), values);
}
void NpzWriter::add(const std::string& name, std::vector<std::int64_t> shape,
                    std::span<const std::uint8_t> values) {
  state_->append_integers(state_->declare(name, ArrayType::uint8, std::move(shape), false), values);
}

void NpzWriter::finish() { state_->finish(); }

}  // namespace sinkscope
