#include "ops/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
constexpr std::int64_t words_per_task = (4 << 20) / 8;
constexpr std::align_val_t alignment{64};

// Independent sums, so that the additions never wait for each other.
std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  constexpr int lanes = 32;
  std::uint64_t partial[lanes] = {};
  for (std::int64_t i = 0; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) partial[lane] += words[i + lane];
  std::uint64_t sum = 0;
  for (const std::uint64_t one : partial) sum += one;
  return sum;
}

}  // namespace

ReadBandwidth::ReadBandwidth(std::int64_t bytes)
    : bytes_(bytes),
      words_(std::max<std::int64_t>(1, std::min(bytes, most_bytes) / 8)),
      memory_(static_cast<std::uint64_t*>(
          ::operator new(static_cast<std::size_t>(words_) * sizeof(std::uint64_t), alignment))) {
  parallel_rows(words_, words_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) memory_[i] = static_cast<std::uint64_t>(i);
  });
}

ReadBandwidth::~ReadBandwidth() { ::operator delete(memory_, alignment); }

std::uint64_t ReadBandwidth::run() const {
  std::atomic<std::uint64_t> sum{0};
  for (std::int64_t left = bytes_ / 8; left > 0; left -= words_)
    parallel_rows(std::min(left, words_), words_per_task,
                  [&](std::int64_t begin, std::int64_t end) { sum += sum_of(memory_ + begin, end - begin); });
  return sum;
}

}  // namespace sinkscope
