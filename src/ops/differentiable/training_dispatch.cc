// Which copy of training_kernels.cc this process uses: that of the instruction set that cpu_kernels() took.
#include "ops/cpu_kernels.h"
#include "ops/differentiable/training_kernels.h"

namespace sinkscope {

namespace portable {
const TrainingKernels& training_kernels();
}
#ifdef SINKSCOPE_X86_KERNELS
namespace avx2 {
const TrainingKernels& training_kernels();
}
namespace avx512 {
const TrainingKernels& training_kernels();
}
namespace avx512_bf16 {
const TrainingKernels& training_kernels();
}
#endif

std::vector<const TrainingKernels*> available_training_kernels() {
  std::vector<const TrainingKernels*> levels{&portable::training_kernels()};
#ifdef SINKSCOPE_X86_KERNELS
  const std::vector<const TrainingKernels*> others{&avx2::training_kernels(), &avx512::training_kernels(),
                                                   &avx512_bf16::training_kernels()};
  for (const CpuKernels* available : available_cpu_kernels())
    for (const TrainingKernels* level : others)
      if (level->name == available->name) levels.push_back(level);
#endif
  return levels;
}

const TrainingKernels& training_kernels() {
  static const TrainingKernels& chosen = [&]() -> const TrainingKernels& {
    for (const TrainingKernels* level : available_training_kernels())
      if (level->name == cpu_kernels().name) return *level;
    return portable::training_kernels();
  }();
  return chosen;
}

}  // namespace sinkscope
