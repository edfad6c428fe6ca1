#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <sinkscope/safetensors.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/json.h"
#include "checkpoint/message.h"
#include "checkpoint/safetensors_header.h"

namespace sinkscope {
namespace {

// Where a tensor lies in the data and what it is, as the header says it.
std::string entry_of(const StoredTensor& tensor, std::uint64_t begin, std::uint64_t end) {
  return json_line(Json(tensor.name)) + ":" +
         json_line(nlohmann::ordered_json{
             {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}});
}

// 8 bytes little-endian length, JSON, blanks up to a multiple of 8, so that the data is aligned.
std::string header_of(const std::vector<StoredTensor>& tensors,
                      const std::map<std::string, std::string>& metadata, const std::string& file,
                      std::uint64_t& data_bytes) {
  constexpr const char* reserved = "__metadata__";
  std::string text = "{";
  if (!metadata.empty()) text += fmt::format("\"{}\":{},", reserved, json_line(Json(metadata)));
  std::set<std::string_view> taken{reserved};
  data_bytes = 0;
  for (const StoredTensor& tensor : tensors) {
    if (!taken.insert(tensor.name).second)
      throw Error("{}: the tensor name {} is taken; every tensor needs a name of its own", file,
                  in_quotes(tensor.name));
    const std::uint64_t begin = data_bytes;
    if (__builtin_add_overflow(begin, tensor.byte_count(), &data_bytes))
      throw Error("{}: its tensors are too large for 64-bit sizes together", file);
    text += entry_of(tensor, begin, data_bytes) + ",";
  }
  if (text.back() == ',') text.pop_back();
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > safetensors_header_cap)
    throw Error("{}: the header would have {} bytes, the safetensors format allows at most {}", file,
                text.size(), safetensors_header_cap);
  std::string length;
  for (unsigned shift = 0; shift < 64; shift += 8) length += static_cast<char>((text.size() >> shift) & 0xFF);
  return length + text;
}

}  // namespace

std::uint64_t StoredTensor::byte_count() const {
  std::uint64_t bytes = dtype_size(dtype);
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      throw Error("tensor {}: the shape {} has no 64-bit size", in_quotes(name), shape_text(shape));
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<StoredTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path, O_WRONLY | O_CREAT | O_TRUNC, path.string()), name_(path.string()) {
  file_.write(header_of(tensors, metadata, name_, data_bytes_));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > data_bytes_ - written_)
    throw Error("{}: its tensors have {} bytes, more were given", name_, data_bytes_);
  file_.write(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::finish(bool flush) {
  if (written_ != data_bytes_)
    throw Error("{}: its tensors have {} bytes, only {} were given", name_, data_bytes_, written_);
  if (flush) file_.sync();
  file_.close();
}

}  // namespace sinkscope
