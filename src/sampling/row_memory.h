// What one row of a batch attended, for as long as an intervention needs it, and the keys it loses for that.
#pragma once

#include <sinkscope/sinks.h>
#include <sinkscope/transformer.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/random_stream.h"

namespace sinkscope {

struct RowMemory {
  /// Column sums and their diagonal in the previous step, float32 [L, H, S]; undefined before the first one.
  at::Tensor columns, diagonal;
  /// Of rank own: what each position attended when it was last computed, int32 [L, H, S, room]; `least`, with
  /// twice the room, only of control bottom.
  at::Tensor most, least;

  std::vector<std::uint8_t> removed = {};  ///< [L, H, S] in this step
  RemovedRowKeys removed_for = {};         ///< of rank own, of the positions that this step computes
};

/// The row in the step that comes.
struct RowStep {
  std::int64_t layers = 0, heads = 0;
  std::vector<std::uint8_t> classes = {};  ///< [S] in position_class_names
  std::int64_t first = 0, last = 0;        ///< positions computed
  std::int64_t number = 0;                 ///< of the step
  bool forgets = false;                    ///< what was attended before it does not count
  std::int64_t room = 0;                   ///< of rank own: keys in a list

  std::int64_t length() const { return static_cast<std::int64_t>(classes.size()); }
};

/// The keys that all queries lose in this step, none where there is no previous step to rank by: `removed`.
/// Returns how many keys the control could not find.
std::int64_t choose_removed(RowMemory& row, const RowStep& step, const InterventionOptions& options,
                            RandomStream& control);

/// The keys that each computed position loses by its own latest row, none where it has none: `removed_for`.
/// Returns how many keys the control could not find.
std::int64_t choose_removed_for(RowMemory& row, const RowStep& step, const InterventionOptions& options,
                                RandomStream& control);

/// The last position's row of this step as column sums: the row times S. `first_key`: where the row's keys
/// begin in what was seen.
void remember_last_row(RowMemory& row, std::int64_t first_key, std::int64_t length, const Observation& seen);

/// The lists of the positions that this step computed, `first_token` being the first of them in what was
/// seen.
void remember_lists(RowMemory& row, const RowStep& step, std::int64_t first_token, const Observation& seen);

}  // namespace sinkscope
