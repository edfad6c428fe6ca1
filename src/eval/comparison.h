// The scores of a grid's cells against each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "eval/grid.h"

namespace sinkscope {

/// The lines of samples_TASK.jsonl of one cell, by task.
struct CellLines {
  Cell cell;
  std::vector<std::pair<std::string, std::vector<nlohmann::ordered_json>>> tasks;
};

/// One row for each task, metric, filter and cell: `task`, `metric`, `filter`, `cell`, `top_k`, `rank`,
/// `control`, `samples`, `value`, `stderr`, and against other cells over the problems both have:
/// `against_plain` (that with nothing masked) and, of the sinks themselves, `against_controls` [{`control`,
/// ...}], each with `samples`, `difference` (this cell's value minus the other's), `interval` (95 %, paired
/// bootstrap over problems), and of 0/1 scores `only_this`, `only_other` and `p` (McNemar, exact, two-sided).
/// Null where there is nothing to compare with.
nlohmann::ordered_json comparison_table(const std::vector<CellLines>& cells, std::size_t resamples,
                                        std::uint64_t seed);

}  // namespace sinkscope
