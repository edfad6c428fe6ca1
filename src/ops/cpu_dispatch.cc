// Which copy of cpu_kernels.cc this process uses.
#include <sinkscope/error.h>

#include <cstdlib>
#include <string>

#include "ops/cpu_kernels.h"

namespace sinkscope {

namespace portable {
const CpuKernels& kernels();
}
#ifdef SINKSCOPE_X86_KERNELS
namespace avx2 {
const CpuKernels& kernels();
}
namespace avx512 {
const CpuKernels& kernels();
}
namespace avx512_bf16 {
const CpuKernels& kernels();
}
#endif

std::vector<const CpuKernels*> available_cpu_kernels() {
  std::vector<const CpuKernels*> levels{&portable::kernels()};
#ifdef SINKSCOPE_X86_KERNELS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return levels;
  levels.push_back(&avx2::kernels());
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return levels;
  levels.push_back(&avx512::kernels());
  if (__builtin_cpu_supports("avx512bf16")) levels.push_back(&avx512_bf16::kernels());
#endif
  return levels;
}

namespace {

const CpuKernels& choose() {
  const std::vector<const CpuKernels*> levels = available_cpu_kernels();
  const char* wanted = std::getenv("SINKSCOPE_CPU");
  if (wanted == nullptr || *wanted == '\0') return *levels.back();
  std::string names;
  for (const CpuKernels* level : levels) {
    if (level->name == wanted) return *level;
    names += (names.empty() ? "" : ", ") + std::string(level->name);
  }
  throw UsageError("SINKSCOPE_CPU={} is not an instruction set this processor runs; it runs {}", wanted,
                   names);
}

}  // namespace

const CpuKernels& cpu_kernels() {
  static const CpuKernels& chosen = choose();
  return chosen;
}

}  // namespace sinkscope
