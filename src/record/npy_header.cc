#include "record/npy_header.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <array>
#include <bit>
#include <limits>

#include "record/little_endian.h"

namespace sinkscope {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written and read as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;
// NumPy leaves room for the leading dimension to grow to the longest number it foresees.
constexpr std::size_t longest_dimension = 21;
constexpr std::size_t most_dimensions = 64;

struct TypeNames {
  ArrayType type;
  std::string_view description;  // NumPy's `descr`
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeNames, 7> types{{{ArrayType::uint8, "|u1", "uint8", 1},
                                          {ArrayType::uint16, "<u2", "uint16", 2},
                                          {ArrayType::int32, "<i4", "int32", 4},
                                          {ArrayType::int64, "<i8", "int64", 8},
                                          {ArrayType::float16, "<f2", "float16", 2},
                                          {ArrayType::float32, "<f4", "float32", 4},
                                          {ArrayType::float64, "<f8", "float64", 8}}};

const TypeNames& names_of(ArrayType type) {
  for (const TypeNames& names : types)
    if (names.type == type) return names;
  throw Error("{} is no element type of an array", static_cast<int>(type));
}

ArrayType type_of(std::string_view description, const std::string& where) {
  if (description == "|b1") return ArrayType::uint8;  // NumPy stores booleans as 0 and 1
  for (const TypeNames& names : types)
    if (names.description == description) return names.type;
  if (description.starts_with('>'))
    throw Error("{} has the big-endian type '{}'; convert it to little endian", where, description);
  if (description == "|O")
    throw Error("{} holds Python objects, which only Python can load; convert it to numbers", where);
  throw Error(
      "{} has the element type '{}'; only bool, uint8, uint16, int32, int64, float16, float32 and float64 "
      "are read",
      where, description);
}

// Reads the Python dictionary of a header: three known keys, each a string, a bool or a tuple of integers.
class DictionaryReader {
 public:
  DictionaryReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader read() {
    NpyHeader header;
    bool seen_type = false, seen_order = false, seen_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = read_string();
      expect(':');
      if (key == "descr" && !seen_type) {
        header.type = read_type();
        seen_type = true;
      } else if (key == "fortran_order" && !seen_order) {
        fortran_order_ = read_bool();
        seen_order = true;
      } else if (key == "shape" && !seen_shape) {
        header.shape = read_shape();
        seen_shape = true;
      } else {
        fail("an unexpected key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) fail("text after its dictionary");
    if (!seen_type || !seen_order || !seen_shape) fail("no descr, fortran_order or shape");
    // With one dimension at most both orders are the same.
    if (fortran_order_ && header.shape.size() > 1)
      throw Error("{} is in Fortran order; save it with numpy.ascontiguousarray", where_);
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error("{} has a broken .npy header: {}", where_, what);
  }

  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }

  bool accept(char wanted) {
    skip_space();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("'{}' is missing", wanted));
  }

  std::string_view read_string() {
    skip_space();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) fail("a string is missing");
    const std::size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string_view value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return value;
  }

  ArrayType read_type() {
    skip_space();
    if (text_.starts_with('['))
      throw Error("{} is a structured array; save each of its fields as an array of its own", where_);
    return type_of(read_string(), where_);
  }

  bool read_bool() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    fail("fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == most_dimensions) fail("too many dimensions");
      shape.push_back(read_dimension());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::int64_t read_dimension() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    skip_space();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      const int digit = text_[digits] - '0';
      if (value > (most - digit) / 10) fail("a dimension is too large");
      value = value * 10 + digit;
    }
    if (digits == 0) fail("a dimension is no whole number");
    text_.remove_prefix(digits);
    if (text_.starts_with('L')) text_.remove_prefix(1);  // Python 2 wrote 3L
    return value;
  }

  std::string_view text_;
  const std::string& where_;
  bool fortran_order_ = false;
};

}  // namespace

std::string_view name_of(ArrayType type) { return names_of(type).name; }

std::size_t size_of(ArrayType type) { return names_of(type).size; }

std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(dimension);
    empty = empty || size == 0;
    if (size != 0 && count > most / size) return std::nullopt;
    if (size != 0) count *= size;
  }
  return empty ? 0 : count;
}

std::string write_npy_header(ArrayType type, std::span<const std::int64_t> shape) {
  const std::string dimensions =
      shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                       names_of(type).description, dimensions);
  if (!shape.empty()) dictionary.append(longest_dimension - fmt::formatted_size("{}", shape[0]), ' ');
  const std::size_t prefix = magic.size() + 4;  // version and length, two bytes each
  const std::size_t unpadded = prefix + dictionary.size() + 1;
  dictionary.append((header_alignment - unpadded % header_alignment) % header_alignment, ' ');
  dictionary.push_back('\n');
  std::string header(magic);
  header.append({'\1', '\0'});
  append_little_endian(header, static_cast<std::uint16_t>(dictionary.size()));
  return header + dictionary;
}

NpyHeader read_npy_header(std::span<const std::byte> array, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(array.data()), array.size());
  if (!text.starts_with(magic) || text.size() < magic.size() + 2) throw Error("{} is no .npy array", where);
  const int version = static_cast<unsigned char>(text[magic.size()]);
  if (version < 1 || version > 3) throw Error("{} has .npy version {}; 1 to 3 are read", where, version);
  const std::size_t length_at = magic.size() + 2;
  const std::size_t length_size = version == 1 ? 2 : 4;
  const std::string_view rest = text.substr(length_at);
  const std::optional<std::uint64_t> length = little_endian(rest, 0, length_size);
  if (!length || *length > rest.size() - length_size)
    throw Error("{} is cut off within its .npy header", where);
  NpyHeader header =
      DictionaryReader(rest.substr(length_size, static_cast<std::size_t>(*length)), where).read();
  header.size = length_at + length_size + static_cast<std::size_t>(*length);
  const std::optional<std::uint64_t> count = element_count(header.shape);
  const std::uint64_t data = array.size() - header.size;
  if (!count || *count > data / size_of(header.type) || *count * size_of(header.type) != data)
    throw Error("{} holds {} bytes of data, which is not what its shape ({}) of {} takes", where, data,
                fmt::join(header.shape, ", "), name_of(header.type));
  return header;
}

}  // namespace sinkscope
