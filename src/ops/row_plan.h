// How the rows of a batch are cut into matrix products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinkscope {

/// Rows [begin, begin + rows) of one sequence.
struct RowPiece {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

/// Sequences are cut into pieces by their own length alone, and a product never spans two of them: the bits
/// of a row then do not depend on what else is in the batch. Groups of pieces share one pass over a slice of
/// a weight.
struct RowPlan {
  std::vector<RowPiece> pieces;
  std::vector<std::int64_t> groups{0};  // [groups + 1], indices into pieces
  std::int64_t rows = 0;

  std::int64_t group_count() const { return static_cast<std::int64_t>(groups.size()) - 1; }
  std::span<const RowPiece> group(std::int64_t index) const {
    return std::span(pieces).subspan(static_cast<std::size_t>(groups[index]),
                                     static_cast<std::size_t>(groups[index + 1] - groups[index]));
  }
};

/// offsets [sequences + 1]: the first row of each sequence, and the number of rows.
RowPlan plan_rows(std::span<const std::int64_t> offsets);

/// The largest piece: what buffers of results are made for.
inline constexpr std::int64_t most_rows_of_a_piece = 512;

}  // namespace sinkscope
