// How fast this machine reads memory: what bounds a product with a single row.
#pragma once

#include <cstdint>

namespace sinkscope {

/// Memory that all threads together read once, front to back, as far as no cache holds it. It is the object's
/// own, at most 1 GiB, read over again where more is asked for.
class ReadBandwidth {
 public:
  explicit ReadBandwidth(std::int64_t bytes);
  ~ReadBandwidth();
  ReadBandwidth(const ReadBandwidth&) = delete;
  ReadBandwidth& operator=(const ReadBandwidth&) = delete;

  /// Reads all bytes once; a sum over them that nobody needs, so that the compiler keeps the reads.
  std::uint64_t run() const;
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::int64_t words_;  // of the memory
  std::uint64_t* memory_;
};

}  // namespace sinkscope
