// Memory that grows and stays: what a thread works in between two calls.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace sinkscope {

/// Uninitialised, aligned to a cache line. Growing forgets the content.
class AlignedBuffer {
 public:
  /// At least `count` values of T.
  template <typename T>
  T* get(std::size_t count) {
    return static_cast<T*>(bytes(count * sizeof(T)));
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Delete {
    void operator()(void* data) const { ::operator delete(data, alignment); }
  };

  void* bytes(std::size_t wanted) {
    if (size_ < wanted) {
      data_.reset();  // never both at once
      size_ = 0;
      data_.reset(::operator new(wanted, alignment));
      size_ = wanted;
    }
    return data_.get();
  }

  std::unique_ptr<void, Delete> data_;
  std::size_t size_ = 0;
};

}  // namespace sinkscope
