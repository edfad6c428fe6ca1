#include "draw/evaluation_grid.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/json.h"
#include "draw/matrix.h"
#include "draw/recorded.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// A row of the table, with errors that name it.
class RowReader {
 public:
  RowReader(const Json& row, std::string where) : row_(row), where_(std::move(where)) {
    if (!row.is_object()) throw Error("{} is {}; an object is right", where_, json_type_name(row));
  }

  std::string text(const char* name) const {
    const Json& value = member(name);
    if (!value.is_string()) refuse(name, value, "a string");
    return value.get<std::string>();
  }

  std::int64_t count(const char* name) const {
    const Json& value = member(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most_count)
      refuse(name, value, "a whole number from 0 on");
    return value.get<std::int64_t>();
  }

  std::optional<double> number(const char* name) const {
    const Json& value = member(name);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number() || !(std::abs(value.get<double>()) <= largest_drawn))
      refuse(name, value, fmt::format("null or a number of at most {:g}", largest_drawn));
    return value.get<double>();
  }

  std::optional<double> standard_error() const {
    const std::optional<double> error = number("stderr");
    if (error && *error < 0) throw Error("{}.stderr is {}; it must be at least 0", where_, *error);
    return error;
  }

 private:
  static constexpr std::uint64_t most_count = 1ULL << 40;

  const Json& member(const char* name) const {
    const auto found = row_.find(name);
    if (found == row_.end()) throw Error("{} has no {}", where_, name);
    return *found;
  }
  [[noreturn]] void refuse(const char* name, const Json& value, const std::string& right) const {
    const std::string is = value.is_number() ? value.dump() : json_type_name(value);
    throw Error("{}.{} is {}; {} is right", where_, name, is, right);
  }

  const Json& row_;
  std::string where_;
};

std::optional<GridScore> score_of(const RowReader& row) {
  const std::optional<double> value = row.number("value");
  if (!value) return std::nullopt;
  GridScore score{row.text("task"),
                  row.text("metric"),
                  row.text("filter"),
                  row.count("top_k"),
                  "",
                  "none",
                  row.count("samples"),
                  *value,
                  row.standard_error()};
  if (score.top_k > 0) {
    score.rank = row.text("rank");
    score.control = row.text("control");
  }
  return score;
}

}  // namespace

bool EvaluationGrid::masks() const {
  return std::any_of(scores.begin(), scores.end(), [](const GridScore& score) { return score.top_k > 0; });
}

EvaluationGrid read_evaluation_grid(const fs::path& folder) {
  const std::string where = (folder / "eval.json").string();
  const Json json = read_json_file(where);
  if (!json.is_object()) throw Error("{} is {}; an object is right", where, json_type_name(json));
  EvaluationGrid grid;
  grid.label = label_of(folder);
  grid.folder = folder.string();
  const auto model = json.find("model");
  if (model != json.end() && model->is_object() && model->contains("name") && (*model)["name"].is_string())
    grid.model = (*model)["name"].get<std::string>();
  const auto table = json.find("table");
  if (table == json.end() || table->is_null()) return grid;
  if (!table->is_array())
    throw Error("{}: table is {}; an array of rows is right", where, json_type_name(*table));
  std::set<std::tuple<std::string, std::string, std::string, std::int64_t, std::string, std::string>> taken;
  for (std::size_t i = 0; i < table->size(); ++i) {
    const std::string place = fmt::format("{}: table[{}]", where, i);
    std::optional<GridScore> score = score_of(RowReader((*table)[i], place));
    if (!score) continue;
    if (!taken.emplace(score->task, score->metric, score->filter, score->top_k, score->rank, score->control)
             .second)
      throw Error("{} is a second row of the same cell, task, metric and filter", place);
    grid.scores.push_back(std::move(*score));
  }
  return grid;
}

}  // namespace sinkscope
