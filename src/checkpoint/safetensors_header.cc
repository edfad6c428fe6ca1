#include "checkpoint/safetensors_header.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/foreign_content.h"
#include "base/json.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

constexpr std::size_t length_bytes = 8;

// Where one tensor says it lies, relative to the data section.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
  const std::string* tensor;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_printable_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
}

std::uint64_t read_header_length(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length |= std::uint64_t{std::to_integer<std::uint8_t>(file[i])} << (8 * i);
  return length;
}

// The JSON text of the header, after everything that can be told without parsing it.
std::string_view header_text(std::span<const std::byte> file, const std::string& name) {
  if (file.empty()) throw Error("{} is empty: the download failed, repeat it", name);
  if (const auto foreign = foreign_content(as_text(file))) throw Error("{} is {}", name, *foreign);
  if (file.size() < length_bytes)
    throw Error("{} has {} bytes, a safetensors file has at least 10: the download failed, repeat it", name,
                file.size());
  const std::uint64_t length = read_header_length(file);
  const std::string_view first_bytes = as_text(file.first(length_bytes));
  if (length > safetensors_header_cap && is_printable_text(first_bytes))
    throw Error("{} is text, not a safetensors file (it begins with {}): the download failed, repeat it",
                name, in_quotes(as_text(file.first(std::min<std::size_t>(file.size(), 40)))));
  if (length > safetensors_header_cap)
    throw Error("{} says its header has {} bytes, the safetensors format allows at most {}", name, length,
                safetensors_header_cap);
  if (length > file.size() - length_bytes)
    throw Error("{} is truncated: its header should have {} bytes, so the file at least {}, but it has {}",
                name, length, length + length_bytes, file.size());
  const std::string_view text = as_text(file.subspan(length_bytes, length));
  // The reference implementation refuses leading blanks, so that a file has one beginning.
  if (!text.starts_with('{'))
    throw Error("{} is not a safetensors file: its header of {} bytes should begin with {{, not {}", name,
                length, in_quotes(text.substr(0, 8)));
  return text;
}

DType read_dtype(const Json& entry, const std::string& where) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string())
    throw Error("{}: dtype should be a string, it is {}", where,
                found == entry.end() ? "missing" : json_type_name(*found));
  const auto dtype = dtype_from_name(found->get_ref<const std::string&>());
  if (!dtype)
    throw Error("{}: the dtype {} is not supported; F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL are",
                where, shown(*found));
  return *dtype;
}

std::vector<std::int64_t> read_shape(const Json& entry, const std::string& where) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array())
    throw Error("{}: shape should be a list of integers, it is {}", where,
                found == entry.end() ? "missing" : json_type_name(*found));
  std::vector<std::int64_t> shape;
  shape.reserve(found->size());
  for (const Json& extent : *found) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw Error("{}: shape should hold non-negative 64-bit integers, not {}", where, shown(extent));
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

// Bytes that the shape needs; none when the number does not fit.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, DType dtype) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(dtype_size(dtype)), &bytes))
    return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::pair<std::uint64_t, std::uint64_t> read_offsets(const Json& entry, const std::string& where) {
  const auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
      !(*found)[1].is_number_unsigned())
    throw Error("{}: data_offsets should be two non-negative integers", where);
  const auto begin = (*found)[0].get<std::uint64_t>();
  const auto end = (*found)[1].get<std::uint64_t>();
  if (end < begin) throw Error("{}: data_offsets end at {} before they begin at {}", where, end, begin);
  return {begin, end};
}

// Fills dtype and shape of `view` and returns where the tensor lies; the bytes follow once all offsets are
// checked.
Extent read_entry(const std::string& tensor, const Json& entry, const std::string& name, TensorView& view) {
  const std::string where = fmt::format("{}: tensor {}", name, in_quotes(tensor));
  if (!entry.is_object()) throw Error("{} should be an object, it is {}", where, json_type_name(entry));
  view.dtype = read_dtype(entry, where);
  view.shape = read_shape(entry, where);
  const auto [begin, end] = read_offsets(entry, where);
  const auto needed = byte_count(view.shape, view.dtype);
  if (!needed) throw Error("{}: the shape {} is too large for 64-bit sizes", where, shape_text(view.shape));
  if (*needed != end - begin)
    throw Error("{}: {} of shape {} takes {} bytes, but data_offsets give it {}", where,
                dtype_name(view.dtype), shape_text(view.shape), *needed, end - begin);
  return {begin, end, &tensor};
}

std::map<std::string, std::string> read_metadata(const Json& value, const std::string& name) {
  if (!value.is_object())
    throw Error("{}: __metadata__ should be an object, it is {}", name, json_type_name(value));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      throw Error("{}: __metadata__ should hold strings only, {} is {}", name, in_quotes(key),
                  json_type_name(text));
    metadata.emplace(key, text.get_ref<const std::string&>());
  }
  return metadata;
}

// The reference implementation's rule: in the order of their offsets the tensors follow each other without
// gap or overlap, from the first to the last byte of the data section.
void check_extents(std::vector<Extent>& extents, std::uint64_t data_bytes, std::uint64_t data_start,
                   const std::string& name) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < covered)
      throw Error("{}: tensor {} begins at byte {} of the data, inside another one that ends at {}", name,
                  in_quotes(*extent.tensor), extent.begin, covered);
    if (extent.begin > covered)
      throw Error("{}: bytes {} to {} of the data, before tensor {}, belong to no tensor", name, covered,
                  extent.begin, in_quotes(*extent.tensor));
    covered = extent.end;
  }
  if (covered > data_bytes)
    throw Error(
        "{} is truncated: its tensors need {} bytes, but the file has {}", name,
        // Saturates: an offset near 2^64 is nonsense anyway.
        covered > std::numeric_limits<std::uint64_t>::max() - data_start ? covered : covered + data_start,
        data_bytes + data_start);
  if (covered < data_bytes)
    throw Error("{} has {} bytes, but its tensors end after {}: the rest belongs to no tensor", name,
                data_bytes + data_start, covered + data_start);
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text = header_text(file, name);
  const Json json = parse_json(text, fmt::format("the header of {}", name));
  const std::span<const std::byte> data = file.subspan(length_bytes + text.size());

  SafetensorsHeader header;
  std::vector<Extent> extents;
  extents.reserve(json.size());
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__") {
      header.metadata = read_metadata(value, name);
      continue;
    }
    const auto position = header.tensors.emplace(key, TensorView{}).first;
    extents.push_back(read_entry(position->first, value, name, position->second));
  }
  check_extents(extents, data.size(), length_bytes + text.size(), name);
  for (const Extent& extent : extents)
    header.tensors.find(*extent.tensor)->second.bytes = data.subspan(extent.begin, extent.end - extent.begin);
  return header;
}

}  // namespace sinkscope
