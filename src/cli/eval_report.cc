#include "cli/eval_report.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "eval/result_files.h"
#include "eval/scoring.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

void write_summary(const std::filesystem::path& folder, const OrderedJson& summary) {
  write_file_atomically(folder / "eval.json", summary.dump(2) + "\n");
}

std::string score_text(const OrderedJson& value, const OrderedJson& error) {
  if (value.is_null()) return "-";
  return error.is_null()
             ? fmt::format("{:.1f}", 100 * value.get<double>())
             : fmt::format("{:.1f} +- {:.1f}", 100 * value.get<double>(), 100 * error.get<double>());
}

std::string p_text(const OrderedJson& p) {
  if (p.is_null()) return "";
  constexpr double smallest = 0.001;
  return p.get<double>() < smallest ? "p < 0.001" : fmt::format("p {:.3f}", p.get<double>());
}

// "-3.2 [-5.0, -1.4] p 0.003"
std::string difference_text(const OrderedJson& compared) {
  if (!compared.is_object() || !compared.contains("difference")) return "";
  std::string text = fmt::format("{:+.1f}", 100 * compared.at("difference").get<double>());
  const OrderedJson& interval = compared.at("interval");
  if (interval.is_array())
    text +=
        fmt::format(" [{:+.1f}, {:+.1f}]", 100 * interval[0].get<double>(), 100 * interval[1].get<double>());
  const std::string p = p_text(compared.at("p"));
  return p.empty() ? text : text + " " + p;
}

std::string name_of_row(const OrderedJson& row) {
  if (row.at("top_k") == 0) return "nothing";
  const std::string control = row.at("control").get<std::string>();
  return fmt::format("{} by {}", row.at("top_k").dump(), row.at("rank").get<std::string>()) +
         (control == "none" ? "" : ", " + control);
}

// What the sinks' cell differs from its controls by.
std::string controls_text(const OrderedJson& row) {
  const OrderedJson& controls = row.at("against_controls");
  if (!controls.is_array()) return "";
  std::string text;
  for (const OrderedJson& control : controls)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", control.at("control").get<std::string>(),
                        difference_text(control));
  return text;
}

bool is_same_score(const OrderedJson& a, const OrderedJson& b) {
  return a.at("task") == b.at("task") && a.at("metric") == b.at("metric") && a.at("filter") == b.at("filter");
}

}  // namespace

OrderedJson cell_json(const Cell& cell) {
  return {{"name", cell.name},
          {"top_k", cell.top_k},
          {"rank", cell.rank.empty() ? OrderedJson() : OrderedJson(cell.rank)},
          {"control", cell.control}};
}

OrderedJson begin_summary(const std::filesystem::path& folder, const RunInfo& info,
                          const OrderedJson& options, const std::vector<Cell>& cells,
                          const OrderedJson& tasks) {
  OrderedJson summary{{"format", 1}, {"version", info.version}, {"command", "eval"}, {"options", options}};
  summary["model"] = {{"name", info.model.name},
                      {"family", info.model.family},
                      {"config_sha256", info.model.config_sha256},
                      {"weights_sha256", info.model.weights_sha256}};
  summary["tasks"] = tasks;
  summary["cells"] = OrderedJson::array();
  for (const Cell& cell : cells) summary["cells"].push_back(cell_json(cell));
  summary["started"] = utc_now();
  summary["ended"] = nullptr;
  write_summary(folder, summary);
  return summary;
}

void end_summary(const std::filesystem::path& folder, OrderedJson& summary,
                 const std::vector<CellLines>& results, std::size_t resamples) {
  summary["table"] = comparison_table(results, resamples, /*seed=*/0);
  summary["ended"] = utc_now();
  write_file_atomically(folder / "eval.csv", table_csv(summary["table"]));
  write_summary(folder, summary);
}

OrderedJson read_summary(const std::filesystem::path& file) {
  OrderedJson summary = parse_ordered_json(read_file(file), file.string());
  const bool right = summary.is_object() && summary.value("command", OrderedJson()) == "eval" &&
                     summary.contains("options") && summary["options"].is_object();
  if (!right)
    throw Error("{} is not what `sinkscope eval` writes: it needs command \"eval\" and options",
                file.string());
  (void)read_cells(summary, file.string());
  return summary;
}

std::string summary_tables(const OrderedJson& summary) {
  std::string text;
  const OrderedJson* before = nullptr;
  for (const OrderedJson& row : summary.at("table")) {
    if (before == nullptr || !is_same_score(*before, row)) {
      text +=
          fmt::format("{}{}: {} ({}), % +- standard error of {} problems\n", before == nullptr ? "" : "\n",
                      row.at("task").get<std::string>(), row.at("metric").get<std::string>(),
                      row.at("filter").get<std::string>(), row.at("samples").dump());
      if (summary.at("cells").size() > 1)
        text += fmt::format("  {:<24} {:>14}  {:<38} {}\n", "masked", "score", "minus nothing [95 %]",
                            "minus its controls [95 %]");
    }
    text += fmt::format("  {:<24} {:>14}  {:<38} {}", name_of_row(row),
                        score_text(row.at("value"), row.at("stderr")),
                        difference_text(row.at("against_plain")), controls_text(row));
    text.resize(text.find_last_not_of(' ') + 1);
    text += '\n';
    before = &row;
  }
  return text;
}

std::string score_note(const CellLines& cell) {
  const auto& [task, lines] = cell.tasks.back();
  std::string scores;
  const OrderedJson results = aggregate(task, lines);
  for (const auto& [name, value] : results.items()) {
    if (!value.is_number() || name.find("_stderr,") != std::string::npos) continue;
    const std::size_t comma = name.find(',');
    const OrderedJson error =
        results.value(name.substr(0, comma) + "_stderr" + name.substr(comma), OrderedJson());
    scores += fmt::format("{} {} {}", scores.empty() ? "" : ",", name, score_text(value, error));
  }
  return fmt::format("{}, {}:{}", cell.cell.name, task, scores);
}

}  // namespace sinkscope
