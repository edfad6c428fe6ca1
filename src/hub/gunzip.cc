#include "hub/gunzip.h"

#include <sinkscope/error.h>
#include <zlib.h>

#include <memory>

namespace sinkscope {

std::string gunzip(std::string_view packed, const std::string& where, std::size_t largest) {
  constexpr int gzip_only = 16 + MAX_WBITS;
  constexpr std::size_t step = std::size_t{1} << 16;
  if (packed.size() > largest) throw Error("{} is larger than {} bytes", where, largest);
  z_stream stream{};
  if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string content;
  while (true) {
    const std::size_t before = content.size();
    content.resize(before + step);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + before);
    stream.avail_out = static_cast<uInt>(step);
    const int status = inflate(&stream, Z_NO_FLUSH);
    content.resize(before + step - stream.avail_out);
    if (content.size() > largest) throw Error("{} unpacks to more than {} bytes", where, largest);
    if (status == Z_STREAM_END && stream.avail_in == 0) return content;
    if (status == Z_STREAM_END && inflateReset(&stream) != Z_OK)
      throw Error("{} is no whole gzip file", where);
    if (status != Z_OK && status != Z_STREAM_END) throw Error("{} is no whole gzip file", where);
    if (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)
      throw Error("{} is no whole gzip file", where);
  }
}

}  // namespace sinkscope
