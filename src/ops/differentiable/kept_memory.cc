#include "ops/differentiable/kept_memory.h"

#include <cstdlib>  // tells whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sinkscope {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);         // large blocks from the heap, too
  mallopt(M_TRIM_THRESHOLD, -1);  // whose end is never given back
  mallopt(M_TOP_PAD, 64 << 20);   // and which grows in large steps
#endif
}

}  // namespace sinkscope
