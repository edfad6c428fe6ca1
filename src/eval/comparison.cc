#include "eval/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/scoring.h"
#include "measure/statistics.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Lines = std::vector<OrderedJson>;

struct Column {
  std::string metric, filter;
};

// The metrics and filters of a task, in the order of its lines.
std::vector<Column> columns_of(const Lines& lines) {
  std::vector<Column> columns;
  for (const OrderedJson& line : lines)
    for (const OrderedJson& metric : line.at("metrics")) {
      const Column column{metric.get<std::string>(), line.at("filter").get<std::string>()};
      const bool known = std::any_of(columns.begin(), columns.end(), [&](const Column& other) {
        return other.metric == column.metric && other.filter == column.filter;
      });
      if (!known) columns.push_back(column);
    }
  return columns;
}

const Lines* lines_of(const CellLines& cell, const std::string& task) {
  for (const auto& [name, lines] : cell.tasks)
    if (name == task) return &lines;
  return nullptr;
}

std::map<std::int64_t, double> scores_of(const Lines& lines, const Column& column) {
  std::map<std::int64_t, double> scores;
  for (const OrderedJson& line : lines)
    if (line.at("filter") == column.filter && line.contains(column.metric))
      scores[line.at("doc_id").get<std::int64_t>()] = line.at(column.metric).get<double>();
  return scores;
}

struct Settings {
  std::size_t resamples;
  std::uint64_t seed;
};

OrderedJson difference(const Lines& lines, const Lines* other_lines, const Column& column,
                       const Settings& settings) {
  if (other_lines == nullptr) return nullptr;
  const auto other = scores_of(*other_lines, column);
  std::vector<double> first, second;
  std::uint64_t only_this = 0, only_other = 0;
  bool is_binary = true;
  double sum = 0;
  for (const auto& [problem, score] : scores_of(lines, column)) {
    const auto found = other.find(problem);
    if (found == other.end()) continue;
    first.push_back(found->second);
    second.push_back(score);
    sum += score - found->second;
    is_binary = is_binary && (score == 0 || score == 1) && (found->second == 0 || found->second == 1);
    only_this += score > found->second ? 1 : 0;
    only_other += score < found->second ? 1 : 0;
  }
  if (first.empty()) return nullptr;
  OrderedJson result{{"samples", first.size()}, {"difference", sum / static_cast<double>(first.size())}};
  const auto interval = paired_bootstrap(first, second, settings.resamples, settings.seed);
  result["interval"] = interval ? OrderedJson{interval->low, interval->high} : OrderedJson();
  result["only_this"] = is_binary ? OrderedJson(only_this) : OrderedJson();
  result["only_other"] = is_binary ? OrderedJson(only_other) : OrderedJson();
  result["p"] = is_binary ? OrderedJson(mcnemar_p(only_this, only_other)) : OrderedJson();
  return result;
}

OrderedJson against_controls(const std::vector<CellLines>& cells, const CellLines& cell,
                             const std::string& task, const Lines& lines, const Column& column,
                             const Settings& settings) {
  if (cell.cell.top_k == 0 || cell.cell.control != "none") return nullptr;
  OrderedJson rows = OrderedJson::array();
  for (const CellLines& other : cells) {
    const bool is_control = other.cell.rank == cell.cell.rank && other.cell.top_k == cell.cell.top_k &&
                            other.cell.control != "none";
    if (!is_control) continue;
    OrderedJson row{{"control", other.cell.control}};
    const OrderedJson compared = difference(lines, lines_of(other, task), column, settings);
    if (compared.is_object()) row.update(compared);
    rows.push_back(std::move(row));
  }
  return rows.empty() ? OrderedJson() : rows;
}

}  // namespace

OrderedJson comparison_table(const std::vector<CellLines>& cells, std::size_t resamples, std::uint64_t seed) {
  const Settings settings{resamples, seed};
  OrderedJson table = OrderedJson::array();
  if (cells.empty()) return table;
  const auto plain =
      std::find_if(cells.begin(), cells.end(), [](const CellLines& cell) { return cell.cell.top_k == 0; });
  for (const auto& [task, first_lines] : cells.front().tasks)
    for (const Column& column : columns_of(first_lines))
      for (const CellLines& cell : cells) {
        const Lines* const lines = lines_of(cell, task);
        if (lines == nullptr) continue;
        const OrderedJson scores = aggregate(task, *lines);
        const bool is_plain = cell.cell.top_k == 0;
        const Lines* const plain_lines = plain == cells.end() || is_plain ? nullptr : lines_of(*plain, task);
        table.push_back(
            {{"task", task},
             {"metric", column.metric},
             {"filter", column.filter},
             {"cell", cell.cell.name},
             {"top_k", cell.cell.top_k},
             {"rank", is_plain ? OrderedJson() : OrderedJson(cell.cell.rank)},
             {"control", cell.cell.control},
             {"samples", scores_of(*lines, column).size()},
             {"value", scores.value(column.metric + "," + column.filter, OrderedJson())},
             {"stderr", scores.value(column.metric + "_stderr," + column.filter, OrderedJson())},
             {"against_plain", difference(*lines, plain_lines, column, settings)},
             {"against_controls", against_controls(cells, cell, task, *lines, column, settings)}});
      }
  return table;
}

}  // namespace sinkscope
