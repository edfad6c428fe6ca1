// Reading .npz.
#include <fmt/ranges.h>
#include <sinkscope/error.h>
#include <sinkscope/npz.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/half.h"
#include "base/mapped_file.h"
#include "record/npy_header.h"
#include "record/zip_reading.h"

namespace sinkscope {
namespace {

constexpr std::string_view suffix = ".npy";

template <typename Stored>
Stored load(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof value);  // entries are not aligned
  return value;
}

template <typename Stored, typename Convert>
auto converted(std::span<const std::byte> bytes, Convert&& convert) {
  std::vector<decltype(convert(Stored()))> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = convert(load<Stored>(bytes.data() + i * sizeof(Stored)));
  return values;
}

// A double beyond float's range converts to infinity; the plain cast would be undefined.
float float_from_double(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  if (value > most || value < -most) return value > 0 ? HUGE_VALF : -HUGE_VALF;
  return static_cast<float>(value);
}

std::vector<float> as_floats(ArrayType type, std::span<const std::byte> bytes) {
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case ArrayType::uint8:
      return converted<std::uint8_t>(bytes, cast);
    case ArrayType::uint16:
      return converted<std::uint16_t>(bytes, cast);
    case ArrayType::int32:
      return converted<std::int32_t>(bytes, cast);
    case ArrayType::int64:
      return converted<std::int64_t>(bytes, cast);
    case ArrayType::float16:
      return converted<std::uint16_t>(bytes, float_from_half);
    case ArrayType::float32:
      return converted<float>(bytes, cast);
    case ArrayType::float64:
      return converted<double>(bytes, float_from_double);
  }
  return {};
}

}  // namespace

struct NpzFile::State {
  std::string name;
  std::shared_ptr<MappedFile> mapping;
  std::vector<ZipEntry> entries;
  std::map<std::string, std::size_t, std::less<>> by_name;  // without ".npy"
  std::uint64_t inflate_limit = 0;
  std::uint64_t inflated_bytes = 0;
  std::map<std::size_t, std::vector<std::byte>> inflated;

  void open(std::span<const std::byte> bytes) {
    entries = read_zip_directory(bytes, name);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string_view entry = entries[i].name;
      if (entry.ends_with(suffix)) by_name.emplace(entry.substr(0, entry.size() - suffix.size()), i);
    }
  }

  std::string where(std::string_view array) const { return fmt::format("{}: the array {}", name, array); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const ZipEntry& entry : entries)
      if (entry.name.ends_with(suffix))
        found.push_back(entry.name.substr(0, entry.name.size() - suffix.size()));
    return found;
  }

  std::size_t find(std::string_view array) const {
    const auto found = by_name.find(array);
    if (found == by_name.end())
      throw Error("{} holds no array named {}; it holds {}", name, array, fmt::join(names(), ", "));
    return found->second;
  }

  // The entry as it was before packing.
  std::span<const std::byte> content(std::size_t index, std::string_view array) {
    const ZipEntry& entry = entries[index];
    if (!entry.deflated) return entry.data;
    const auto found = inflated.find(index);
    if (found != inflated.end()) return found->second;
    if (entry.size > inflate_limit - inflated_bytes)
      throw Error("{} takes {} bytes inflated; with the arrays read before it this exceeds {} bytes",
                  where(array), entry.size, inflate_limit);
    inflated_bytes += entry.size;
    return inflated.emplace(index, inflate_entry(entry, where(array))).first->second;
  }

  NpzArray array(std::string_view array_name) {
    const std::span<const std::byte> bytes = content(find(array_name), array_name);
    NpyHeader header = read_npy_header(bytes, where(array_name));
    return {header.type, std::move(header.shape), bytes.subspan(header.size)};
  }

  void verify(std::string_view array_name) {
    const std::size_t index = find(array_name);
    const std::span<const std::byte> bytes = content(index, array_name);
    const auto crc =
        static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
    if (crc != entries[index].crc)
      throw Error("{} has the checksum {:08x}, not the {:08x} it was written with; the file is damaged",
                  where(array_name), crc, entries[index].crc);
  }
};

NpzFile::NpzFile(const std::filesystem::path& path, std::uint64_t inflate_limit)
    : state_(std::make_unique<State>()) {
  state_->name = path.string();
  state_->inflate_limit = inflate_limit;
  state_->mapping = std::make_shared<MappedFile>(path);
  state_->open(state_->mapping->bytes());
}

NpzFile::NpzFile(std::span<const std::byte> bytes, std::string name, std::uint64_t inflate_limit)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->inflate_limit = inflate_limit;
  state_->open(bytes);
}

NpzFile::~NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;

std::vector<std::string> NpzFile::names() const { return state_->names(); }

bool NpzFile::contains(std::string_view name) const { return state_->by_name.contains(name); }

NpzArray NpzFile::array(std::string_view name) const { return state_->array(name); }

std::vector<float> NpzFile::floats(std::string_view name) const {
  const NpzArray array = state_->array(name);
  return as_floats(array.type, array.bytes);
}

std::vector<float> NpzFile::floats(std::string_view name, std::size_t first, std::size_t count) const {
  const NpzArray array = state_->array(name);
  const std::size_t slices = array.shape.empty() ? 0 : static_cast<std::size_t>(array.shape[0]);
  if (first > slices || count > slices - first)
    throw Error("{} has {} slices, too few for {} from {} on", state_->where(name), slices, count, first);
  if (count == 0) return {};
  const std::size_t slice_bytes = array.bytes.size() / slices;
  return as_floats(array.type, array.bytes.subspan(first * slice_bytes, count * slice_bytes));
}

std::vector<std::int32_t> NpzFile::int32s(std::string_view name) const {
  const NpzArray array = state_->array(name);
  const auto narrowed = [&](std::int64_t value) {
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      throw Error("{} holds {}, which does not fit 32 bits", state_->where(name), value);
    return static_cast<std::int32_t>(value);
  };
  switch (array.type) {
    case ArrayType::uint8:
      return converted<std::uint8_t>(array.bytes, narrowed);
    case ArrayType::uint16:
      return converted<std::uint16_t>(array.bytes, narrowed);
    case ArrayType::int32:
      return converted<std::int32_t>(array.bytes, narrowed);
    case ArrayType::int64:
      return converted<std::int64_t>(array.bytes, narrowed);
    default:
      throw Error("{} holds {} values; integers are needed", state_->where(name), name_of(array.type));
  }
}

std::int32_t NpzFile::int32_scalar(std::string_view name) const {
  const NpzArray array = state_->array(name);
  if (array.count() != 1)
    throw Error("{} has {} values; a single number is needed", state_->where(name), array.count());
  return int32s(name).front();
}

void NpzFile::verify(std::string_view name) const { state_->verify(name); }

void NpzFile::verify() const {
  for (const std::string& name : state_->names()) state_->verify(name);
}

}  // namespace sinkscope
