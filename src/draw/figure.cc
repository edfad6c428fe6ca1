#include "draw/figure.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "measure/csv_tables.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

void widen(Axis& axis, const Axis& other) {
  const bool down = axis.to < axis.from;
  const double low = std::min({axis.from, axis.to, other.from, other.to});
  const double high = std::max({axis.from, axis.to, other.from, other.to});
  axis.from = down ? high : low;
  axis.to = down ? low : high;
}

// A matrix fills its axes, which begin with its first cell: where they become longer there is no value.
void fill_axes(Panel& panel) {
  Matrix& old = *panel.matrix;
  const auto rows = static_cast<std::size_t>(std::lround(std::abs(panel.y.to - panel.y.from)));
  const auto columns = static_cast<std::size_t>(std::lround(std::abs(panel.x.to - panel.x.from)));
  if (rows == old.rows && columns == old.columns) return;
  Matrix larger{rows, columns, std::vector<float>(rows * columns, std::nanf(""))};
  for (std::size_t row = 0; row < old.rows; ++row)
    std::copy_n(old.values.begin() + static_cast<std::ptrdiff_t>(row * old.columns), old.columns,
                larger.values.begin() + static_cast<std::ptrdiff_t>(row * columns));
  old = std::move(larger);
}

void share_axes(std::vector<FigurePart>& parts) {
  for (std::size_t i = 0; i < parts[0].panels.size(); ++i) {
    Axis x = parts[0].panels[i].x, y = parts[0].panels[i].y;
    for (const FigurePart& part : parts) {
      widen(x, part.panels[i].x);
      widen(y, part.panels[i].y);
    }
    for (FigurePart& part : parts) {
      Panel& panel = part.panels[i];
      panel.x.from = x.from, panel.x.to = x.to, panel.y.from = y.from, panel.y.to = y.to;
      if (panel.matrix) fill_axes(panel);
    }
  }
}

// The curves of all parts in the first one's panel: a colour for each run, or, where runs have several
// curves, a colour for each of these and dashes for each run.
void lay_over(std::vector<FigurePart>& parts) {
  std::vector<Curve> curves;
  std::vector<std::string> titles;
  const auto several = [](const FigurePart& part) { return part.panels[0].curves.size() > 1; };
  const bool dashed = std::any_of(parts.begin(), parts.end(), several);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (Curve& curve : parts[p].panels[0].curves) {
      auto found = std::find(titles.begin(), titles.end(), curve.title);
      if (found == titles.end()) found = titles.insert(titles.end(), curve.title);
      curve.colour = curve_colour(dashed ? static_cast<std::size_t>(found - titles.begin()) : p);
      if (dashed) curve.dash = static_cast<int>(p % 5) + 1;
      curve.title = parts[p].run + (curve.title.empty() ? "" : ": " + curve.title);
      curves.push_back(std::move(curve));
    }
    if (p > 0) parts[p].panels.clear();
  }
  parts[0].panels[0].curves = std::move(curves);
}

OrderedJson axis_json(const Axis& axis) {
  return {{"title", axis.title}, {"from", axis.from}, {"to", axis.to}, {"logarithmic", axis.logarithmic}};
}

OrderedJson panel_json(const Panel& panel, const PanelPlace& place) {
  OrderedJson json{{"title", panel.title}, {"x", axis_json(panel.x)}, {"y", axis_json(panel.y)}};
  if (panel.matrix)
    json["cell"] = {{"rows", panel.row_factor}, {"columns", panel.column_factor}, {"by", "maximum"}};
  if (!panel.labels.empty()) {
    json["labels"] = OrderedJson::array();
    for (const Label& label : panel.labels)
      json["labels"].push_back({{"at", label.at}, {"text", label.text}});
  }
  if (!panel.dashes.empty()) {
    json["dashes"] = OrderedJson::array();
    for (const auto& [x, y] : panel.dashes) json["dashes"].push_back({x, y});
  }
  json["place"] = {
      {"left", place.left}, {"top", place.top}, {"right", place.right}, {"bottom", place.bottom}};
  return json;
}

OrderedJson figure_json(const Figure& figure, const Picture& picture, const PictureStyle& style,
                        const FigureFiles& files, const std::string& picture_name) {
  OrderedJson json = files.head;
  json["figure"] = figure.name;
  json["title"] = figure.title;
  json["note"] = figure.note;
  json["runs"] = OrderedJson::array();
  for (const FigurePart& part : figure.parts) {
    OrderedJson run{{"label", part.run}};
    run.update(part.about);
    json["runs"].push_back(std::move(run));
  }
  json["aggregation"] = figure.aggregation;
  if (picture.colour)
    json["colour"] = {{"title", picture.colour->title},
                      {"from", picture.colour->from},
                      {"to", picture.colour->to},
                      {"palette", name_of(style.palette)}};
  json["picture"] = {{"file", picture_name},
                     {"width_mm", style.width},
                     {"height_mm", style.height},
                     {"panels", OrderedJson::array()}};
  if (style.format == PictureFormat::png) json["picture"]["dots_per_inch"] = style.dots;
  const std::vector<PanelPlace> places = places_of(picture, style);
  for (std::size_t i = 0; i < places.size(); ++i)
    json["picture"]["panels"].push_back(panel_json(picture.panels[i], places[i]));
  return json;
}

// The cells of a fitted matrix: run, panel, row_from, row_to, column_from, column_to, value (empty where
// there is none).
std::string matrix_lines(const std::string& run, const Panel& panel) {
  const Matrix& matrix = *panel.matrix;
  std::string head = csv_line({run, panel.title});
  head.back() = ',';
  std::string lines;
  lines.reserve(matrix.values.size() * (head.size() + 24));
  for (std::size_t row = 0; row < matrix.rows; ++row)
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      const std::size_t top = row * panel.row_factor, left = column * panel.column_factor;
      fmt::format_to(std::back_inserter(lines), "{}{},{},{},{},", head, top, top + panel.row_factor - 1, left,
                     left + panel.column_factor - 1);
      const float value = matrix.at(row, column);
      if (!std::isnan(value)) fmt::format_to(std::back_inserter(lines), "{}", value);
      lines += '\n';
    }
  return lines;
}

std::string figure_csv(const Figure& figure, const Picture& picture) {
  std::vector<OrderedJson> names{"run"};
  const bool matrices = picture.panels[0].matrix.has_value();
  if (matrices) {
    names.emplace_back("panel");
    for (int i = 0; i < 2; ++i)
      for (const char* end : {"_from", "_to"}) names.emplace_back(figure.columns[i] + end);
    names.emplace_back(figure.columns[2]);
  } else {
    names.insert(names.end(), figure.columns.begin(), figure.columns.end());
  }
  std::string csv = csv_line(names);
  std::size_t panel = 0;
  for (const FigurePart& part : figure.parts) {
    for (const auto& row : part.rows) {
      std::vector<OrderedJson> fields{part.run};
      fields.insert(fields.end(), row.begin(), row.end());
      csv += csv_line(fields);
    }
    if (!matrices) continue;
    for (std::size_t i = 0; i < part.panels.size(); ++i)
      csv += matrix_lines(part.run, picture.panels[panel++]);
  }
  return csv;
}

}  // namespace

Figure joined(std::vector<Figure> figures, bool overlay) {
  std::string notes;
  bool same_note = true;
  for (const Figure& figure : figures) {
    notes += (notes.empty() ? "" : ". ") + figure.parts[0].run + ": " + figure.note;
    same_note = same_note && figure.note == figures[0].note;
  }
  Figure result = std::move(figures[0]);
  if (!same_note) result.note = notes;
  for (std::size_t i = 1; i < figures.size(); ++i)
    for (FigurePart& part : figures[i].parts) {
      // What differs from the first run's is said with the run.
      if (figures[i].aggregation != result.aggregation) part.about["aggregation"] = figures[i].aggregation;
      result.parts.push_back(std::move(part));
    }
  if (result.parts.size() < 2) return result;
  share_axes(result.parts);
  if (overlay) lay_over(result.parts);
  return result;
}

Picture picture_of(const Figure& figure, double width) {
  Picture picture;
  picture.title = figure.title;
  picture.note = figure.note;
  picture.square = figure.square;
  const bool several = figure.parts.size() > 1;
  if (!several) picture.title = figure.parts[0].run + ": " + picture.title;
  float largest = 0;
  for (const FigurePart& part : figure.parts) {
    for (const Panel& panel : part.panels) {
      if (panel.matrix) largest = std::max(largest, largest_value(*panel.matrix));
      picture.panels.push_back(panel);
      std::string& title = picture.panels.back().title;
      if (several && !figure.parts[1].panels.empty())
        title.insert(0, title.empty() ? part.run : part.run + ", ");
    }
  }
  picture.panels_per_row = width < wide ? 1 : std::min<std::size_t>(picture.panels.size(), 2);
  if (figure.colour) picture.colour = ColourAxis{*figure.colour, 0, largest > 0 ? largest : 1};
  return picture;
}

std::vector<fs::path> write_figure(const Figure& figure, const PictureStyle& style, const FigureFiles& files,
                                   bool& missing_glyphs) {
  Picture picture = picture_of(figure, style.width);
  fit_picture(picture, style);
  const MemoryFile drawn;
  PictureScript script;
  script.add(picture, style, drawn.path());
  const std::string name = files.stem + "." + std::string(name_of(style.format));
  script.run((files.folder / name).string());
  const std::string content = drawn.content();
  if (content.empty()) throw Error("gnuplot left nothing of {}", (files.folder / name).string());
  missing_glyphs = missing_glyphs || script.missing_glyphs();
  make_folders(files.folder);
  const std::vector<fs::path> paths{files.folder / name, files.folder / (files.stem + ".csv"),
                                    files.folder / (files.stem + ".json")};
  const OrderedJson json = figure_json(figure, picture, style, files, name);
  write_file_atomically(paths[1], figure_csv(figure, picture));
  write_file_atomically(paths[2], json_text(json));
  write_file_atomically(paths[0], content);
  return paths;
}

}  // namespace sinkscope
