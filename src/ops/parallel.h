// Work shared among the threads of this process so that the result does not depend on how many there are.
#pragma once

#include <cstdint>

namespace sinkscope {

/// Threads that parallel_for uses: what set_thread_count said, else what OpenMP would use.
int thread_count();
void set_thread_count(int count);

/// Calls call(context, i) once for every i in [0, count), on all threads. See parallel_for.
void run_in_parallel(std::int64_t count, void (*call)(void* context, std::int64_t i), void* context);

/// Calls body(i) once for every i in [0, count), on all threads. Whoever calls cuts the work into pieces by
/// its shape alone. Inside body every library sees one thread: oneDNN plans its blocking by the thread count,
/// and the bits of a product would follow. Of the exceptions that bodies throw, that of the lowest i is
/// thrown again here, so that a message does not depend on the threads either. Inside body it runs on the
/// calling thread alone.
template <typename Body>
void parallel_for(std::int64_t count, Body body) {
  run_in_parallel(
      count, [](void* context, std::int64_t i) { (*static_cast<Body*>(context))(i); }, &body);
}

/// The same for ranges of at most `grain` rows: body(begin, end).
template <typename Body>
void parallel_rows(std::int64_t rows, std::int64_t grain, Body body) {
  const std::int64_t pieces = (rows + grain - 1) / grain;
  parallel_for(pieces, [&](std::int64_t piece) {
    const std::int64_t begin = piece * grain;
    body(begin, begin + grain < rows ? begin + grain : rows);
  });
}

}  // namespace sinkscope
