// Work shared among the threads of this process so that the result does not depend on how many there are.
#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace sinkscope {

/// Calls body(i) once for every i in [0, count), on all threads. Whoever calls cuts the work into pieces by
/// its shape alone. Inside body every library sees one thread: oneDNN plans its blocking by the thread count,
/// and the bits of a product would follow. Of the exceptions that bodies throw, that of the lowest i is
/// thrown again here, so that a message does not depend on the threads either.
template <typename Body>
void parallel_for(std::int64_t count, Body body) {
  std::exception_ptr failure;
  std::int64_t failed_at = count;
#pragma omp parallel
  {
    omp_set_num_threads(1);  // of this team member only; gone at the end of the region
#pragma omp for schedule(dynamic)
    for (std::int64_t i = 0; i < count; ++i) {
      try {
        body(i);
      } catch (...) {
#pragma omp critical(sinkscope_parallel_failure)
        if (i < failed_at) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
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
