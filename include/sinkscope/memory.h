// How much memory running a checkpoint takes, before anything is loaded.
#pragma once

#include <sinkscope/checkpoint.h>
#include <sinkscope/transformer.h>

#include <cstdint>

namespace sinkscope {

/// Rows of a sample whose logits a sampler keeps at a time where noise needs them whole.
inline constexpr std::int64_t rows_of_logits = 64;

/// What the model is to be used for, on the CPU.
struct MemoryUse {
  at::ScalarType dtype = at::kFloat;
  WeightFormat weights = WeightFormat::native;
  int threads = 1;
  std::int64_t sequences = 1;  // rows of a pass; with guidance two for each sample
  std::int64_t positions = 1;  // of each of them
  Capture capture = Capture::columns;
  bool removes_keys = false;     // an intervention: it also remembers the previous step
  std::int64_t listed_keys = 0;  // of rank own: keys in all lists of one query
  bool compares = false;         // the effect of an intervention: a second pass, some rows of logits of both
  std::int64_t maps = 0;         // full attention maps kept of each row
  bool keeps_logits = false;     // noise needs them, some rows at a time
  bool keeps_keys = false;       // a cache of keys and values of all positions
};

/// Bytes. What the process itself takes (libraries, code made at run time) is not in it.
struct MemoryEstimate {
  std::int64_t weights = 0;       // matrices as they are kept, norms
  std::int64_t embedding = 0;     // pages of the file's embedding that the tokens of a pass touch
  std::int64_t pass = 0;          // the arena of a pass
  std::int64_t threads = 0;       // what all threads work in
  std::int64_t observations = 0;  // column sums, maps, the previous step
  std::int64_t head = 0;          // partial results of the head, or some rows of logits
  std::int64_t cache = 0;         // keys and values

  std::int64_t total() const { return weights + embedding + pass + threads + observations + head + cache; }
};

MemoryEstimate estimate_memory(const Checkpoint& checkpoint, const MemoryUse& use);

}  // namespace sinkscope
