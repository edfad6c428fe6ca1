#include "eval/result_files.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "base/text_parts.h"
#include "eval/scoring.h"
#include "measure/csv_tables.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

void check_line(const OrderedJson& line, const std::string& where) {
  const bool right =
      line.is_object() && line.contains("doc_id") && line["doc_id"].is_number_integer() &&
      line.contains("filter") && line["filter"].is_string() && line.contains("metrics") &&
      line["metrics"].is_array() &&
      std::all_of(line["metrics"].begin(), line["metrics"].end(), [&](const OrderedJson& metric) {
        return metric.is_string() && line.contains(metric.get<std::string>()) &&
               line[metric.get<std::string>()].is_number();
      });
  if (!right) throw Error("{} is no scored sample: it needs doc_id, filter, metrics and their values", where);
}

OrderedJson optional_number(const OrderedJson& row, const char* part, const char* name) {
  return row.at(part).is_object() ? row.at(part).at(name) : OrderedJson();
}

OrderedJson bound(const OrderedJson& compared, std::size_t which) {
  return compared.is_object() && compared.at("interval").is_array() ? compared.at("interval")[which]
                                                                    : OrderedJson();
}

}  // namespace

std::filesystem::path samples_path(const std::filesystem::path& cell, const std::string& task) {
  return cell / ("samples_" + task + ".jsonl");
}

void write_lines(const std::filesystem::path& path, const std::vector<OrderedJson>& lines) {
  std::string content;
  for (const OrderedJson& line : lines) content += json_line(line) + "\n";
  write_file_atomically(path, content);
}

std::vector<OrderedJson> read_lines(const std::filesystem::path& path) {
  const std::string content = read_file(path, std::uintmax_t{1} << 34);
  std::vector<OrderedJson> lines;
  for (const std::string_view text : lines_of(content)) {
    const std::string where = fmt::format("{} line {}", path.string(), lines.size() + 1);
    lines.push_back(parse_ordered_json(text, where));
    check_line(lines.back(), where);
  }
  return lines;
}

OrderedJson results_json(const CellLines& cell, OrderedJson header) {
  OrderedJson results{{"results", OrderedJson::object()}};
  for (const auto& [task, lines] : cell.tasks) {
    results["results"][task] = aggregate(task, lines);
    std::set<std::int64_t> problems;
    for (const OrderedJson& line : lines) problems.insert(line.at("doc_id").get<std::int64_t>());
    header["n-samples"][task]["effective"] = problems.size();
  }
  results.update(header);
  return results;
}

void write_cell_results(const std::filesystem::path& evaluation, const CellLines& cell,
                        const OrderedJson& header) {
  write_file_atomically(evaluation / cell.cell.name / "results.json",
                        results_json(cell, header).dump(2) + "\n");
}

std::string commit_of(std::filesystem::path folder) {
  folder = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(folder / ".git" / "HEAD")) {
    if (folder == folder.parent_path()) return "";
    folder = folder.parent_path();
  }
  constexpr std::uintmax_t longest = 1 << 20;
  constexpr std::string_view reference = "ref: ";
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  try {
    const std::string head = first_line(read_file(folder / ".git" / "HEAD", longest));
    return head.starts_with(reference)
               ? first_line(read_file(folder / ".git" / head.substr(reference.size()), longest))
               : head;
  } catch (const Error&) {
    return "";  // a branch without a commit, or one that only packed-refs knows
  }
}

std::string table_csv(const OrderedJson& table) {
  std::string csv =
      csv_line({"task", "metric", "filter", "cell", "top_k", "rank", "control", "samples", "value", "stderr",
                "minus_plain", "minus_plain_low", "minus_plain_high", "minus_plain_p", "against",
                "minus_control", "minus_control_low", "minus_control_high", "minus_control_p"});
  for (const OrderedJson& row : table) {
    std::vector<OrderedJson> fields;
    for (const char* name :
         {"task", "metric", "filter", "cell", "top_k", "rank", "control", "samples", "value", "stderr"})
      fields.push_back(row.at(name));
    const OrderedJson& plain = row.at("against_plain");
    for (const OrderedJson& field : {optional_number(row, "against_plain", "difference"), bound(plain, 0),
                                     bound(plain, 1), optional_number(row, "against_plain", "p")})
      fields.push_back(field);
    // One line a control.
    OrderedJson controls = row.at("against_controls");
    if (controls.is_null()) controls = OrderedJson::array({nullptr});
    for (const OrderedJson& control : controls) {
      std::vector<OrderedJson> line = fields;
      for (const char* name : {"control", "difference"})
        line.push_back(control.is_object() ? control.value(name, OrderedJson()) : OrderedJson());
      const bool is_compared = control.is_object() && control.contains("difference");
      line.push_back(is_compared ? bound(control, 0) : OrderedJson());
      line.push_back(is_compared ? bound(control, 1) : OrderedJson());
      line.push_back(is_compared ? control.at("p") : OrderedJson());
      csv += csv_line(line);
    }
  }
  return csv;
}

std::vector<Cell> read_cells(const OrderedJson& evaluation, const std::string& where) {
  std::vector<Cell> cells;
  const auto list = evaluation.find("cells");
  if (list == evaluation.end() || !list->is_array() || list->empty())
    throw Error("{} has no list `cells`", where);
  for (const OrderedJson& entry : *list) {
    const bool right = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.contains("top_k") && entry["top_k"].is_number_integer() &&
                       entry.contains("control") && entry["control"].is_string() && entry.contains("rank") &&
                       (entry["rank"].is_string() || entry["rank"].is_null());
    if (!right) throw Error("{}: cells must hold objects with name, top_k, rank and control", where);
    Cell cell{entry["name"].get<std::string>(), entry["top_k"].get<int>(),
              entry["rank"].is_null() ? "" : entry["rank"].get<std::string>(),
              entry["control"].get<std::string>()};
    if (!is_file_name(cell.name))
      throw Error("{}: the cell {} is no name of a folder", where, json_line(entry["name"]).substr(0, 80));
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace sinkscope
