// Where the panels of a picture lie, and what fits into them.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "draw/picture.h"
#include "draw/picture_metrics.h"

namespace sinkscope {
namespace {

constexpr std::size_t most_label_columns = 14;

struct Margins {
  double left = 0, right = 0, top = 0, bottom = 0;  // mm, of every panel
};

Margins margins_of(const Picture& picture) {
  std::size_t columns = 0;
  bool titles = false;
  for (const Panel& panel : picture.panels) {
    titles = titles || !panel.title.empty();
    for (const Tick& tick : panel.y.ticks) columns = std::max(columns, text_columns(tick.text));
  }
  Margins margins{13, 3.5, 1.5, 10};
  margins.left = std::max(margins.left, width_of(columns, axis_points) + (columns > 6 ? 4 : 6));
  margins.bottom += groups_height(picture);
  margins.top += labels_height(picture) + (titles ? line_height(axis_points) : 0);
  return margins;
}

}  // namespace

double groups_height(const Picture& picture) {
  const auto grouped = [](const Panel& panel) { return !panel.x.groups.empty(); };
  return std::any_of(picture.panels.begin(), picture.panels.end(), grouped) ? line_height(axis_points) : 0;
}

double labels_height(const Picture& picture) {
  std::size_t columns = 0;
  for (const Panel& panel : picture.panels)
    for (const Label& label : panel.labels)
      columns = std::max(columns, std::min(text_columns(label.text), most_label_columns));
  return columns == 0 ? 0 : width_of(columns, small_points) + 1.5;
}

double heading_height(const Picture& picture, const PictureStyle& style) {
  const std::size_t lines = note_lines(picture, style).size();
  return 1 + line_height(title_points) + static_cast<double>(lines) * line_height(small_points) +
         static_cast<double>(legend_rows(picture, style)) * line_height(axis_points);
}

std::vector<std::string> note_lines(const Picture& picture, const PictureStyle& style) {
  return wrapped(picture.note, columns_in(style.width - 4, small_points));
}

// A title once, however many panels and curves have it.
static std::vector<LegendEntry> legend_of(const Picture& picture) {
  std::vector<LegendEntry> entries;
  std::set<std::string> titles{""};
  const auto add = [&](const std::string& title, const std::string& colour, bool box, int dash) {
    if (!titles.insert(title).second) return;
    entries.push_back({shortened(title, 40), colour, box, dash, 0, 0});
  };
  for (const Panel& panel : picture.panels) {
    for (const Boxes& boxes : panel.boxes) add(boxes.title, boxes.colour, true, 1);
    for (const Curve& curve : panel.curves) add(curve.title, curve.colour, false, curve.dash);
  }
  return entries;
}

std::vector<LegendEntry> placed_legend(const Picture& picture, const PictureStyle& style) {
  std::vector<LegendEntry> entries = legend_of(picture);
  double x = 2;
  std::size_t row = 0;
  for (LegendEntry& entry : entries) {
    const double width = 7 + width_of(text_columns(entry.title), axis_points) + 2;
    if (x > 2 && x + width > style.width - 1) {
      x = 2;
      ++row;
    }
    entry.x = x;
    entry.row = row;
    x += width;
  }
  return entries;
}

std::size_t legend_rows(const Picture& picture, const PictureStyle& style) {
  const std::vector<LegendEntry> entries = placed_legend(picture, style);
  return entries.empty() ? 0 : entries.back().row + 1;
}

double flowing_height(const Picture& picture) {
  return picture.flowing_rows == 0
             ? 0
             : 2 + static_cast<double>(picture.flowing_rows) * line_height(flowing_points);
}

std::vector<PanelPlace> places_of(const Picture& picture, const PictureStyle& style) {
  const Margins margins = margins_of(picture);
  const std::size_t columns = std::min(picture.panels_per_row, picture.panels.size());
  const std::size_t rows = (picture.panels.size() + columns - 1) / columns;
  const double top = heading_height(picture, style), bottom = flowing_height(picture);
  const double right = picture.colour ? colour_bar_width : 0;
  const double width = (style.width - right) / static_cast<double>(columns);
  const double height = (style.height - top - bottom) / static_cast<double>(rows);
  double inner_width = width - margins.left - margins.right;
  double inner_height = height - margins.top - margins.bottom;
  if (inner_width < 12 || inner_height < 10)
    throw UsageError(
        "a picture of {:.0f} x {:.0f} mm has no room for its panels; about {:.0f} x {:.0f} is the least",
        style.width, style.height,
        style.width + std::max(0.0, 12 - inner_width) * static_cast<double>(columns),
        style.height + std::max(0.0, 10 - inner_height) * static_cast<double>(rows));
  if (picture.square) inner_width = inner_height = std::min(inner_width, inner_height);
  std::vector<PanelPlace> places;
  for (std::size_t i = 0; i < picture.panels.size(); ++i) {
    const double left = static_cast<double>(i % columns) * width + margins.left;
    const std::size_t row = i / columns;
    const double upper = top + static_cast<double>(row) * height + margins.top;
    places.push_back({left / style.width, upper / style.height, (left + inner_width) / style.width,
                      (upper + inner_height) / style.height});
  }
  return places;
}

double natural_height(const Picture& picture, const PictureStyle& style, double row_height) {
  const std::size_t columns = std::min(picture.panels_per_row, picture.panels.size());
  const std::size_t rows = (picture.panels.size() + columns - 1) / columns;
  const std::size_t legend = legend_rows(picture, style);
  if (!picture.square)
    return row_height * static_cast<double>(rows) +
           line_height(axis_points) * static_cast<double>(legend > 2 ? legend - 2 : 0);
  const Margins margins = margins_of(picture);
  const double right = picture.colour ? colour_bar_width : 0;
  const double width = (style.width - right) / static_cast<double>(columns) - margins.left - margins.right;
  return heading_height(picture, style) + flowing_height(picture) +
         static_cast<double>(rows) * (width + margins.top + margins.bottom);
}

void fit_picture(Picture& picture, const PictureStyle& style) {
  for (Panel& panel : picture.panels)
    for (Label& label : panel.labels) label.text = shortened(label.text, most_label_columns);
  const std::vector<PanelPlace> places = places_of(picture, style);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Panel& panel = picture.panels[i];
    const double width = (places[i].right - places[i].left) * style.width;
    const double height = (places[i].bottom - places[i].top) * style.height;
    panel.labels = thinned(std::move(panel.labels),
                           std::abs(panel.x.to - panel.x.from) / width * line_height(small_points));
    if (!panel.matrix) continue;
    const auto cells = [&](double length) { return static_cast<std::size_t>(length / 25.4 * style.dots); };
    panel.row_factor = pooling_factor(panel.matrix->rows, cells(height));
    panel.column_factor = pooling_factor(panel.matrix->columns, cells(width));
    if (panel.row_factor == 1 && panel.column_factor == 1) continue;
    panel.matrix = pool_by_maximum(*panel.matrix, panel.row_factor, panel.column_factor);
    // The last cells may reach beyond what they stand for.
    const auto stretch = [](Axis& axis, std::size_t drawn, std::size_t factor) {
      const double length = static_cast<double>(drawn * factor);
      if (axis.to > axis.from)
        axis.to = axis.from + length;
      else
        axis.from = axis.to + length;
    };
    stretch(panel.x, panel.matrix->columns, panel.column_factor);
    stretch(panel.y, panel.matrix->rows, panel.row_factor);
  }
}

double text_line_height() { return line_height(flowing_points); }

double flowing_column_width(const PictureStyle& style) {
  constexpr double share = 0.602;  // of the font's size
  const double pixels = share * flowing_points * style.dots / 72;
  return std::max(pixels, std::round(pixels)) / style.dots * 25.4;
}

std::size_t flowing_columns(const PictureStyle& style) {
  return static_cast<std::size_t>((style.width - 4) / flowing_column_width(style));
}

std::size_t flowing_lines(const std::vector<FlowingText>& flowing, std::size_t columns) {
  std::size_t last = 0;
  for (const FlowPlace& place : flow_places(flowing, columns)) last = place.line;
  return last + 1;
}

std::vector<FlowPlace> flow_places(const std::vector<FlowingText>& flowing, std::size_t columns) {
  std::vector<FlowPlace> places;
  std::size_t line = 0, used = 0;
  for (const FlowingText& token : flowing) {
    if (used > 0 && (token.begins_line || used + token.columns > columns)) {
      ++line;
      used = 0;
    }
    places.push_back({line, used});
    used += token.columns;
  }
  return places;
}

std::vector<Tick> round_ticks(const Axis& axis, std::size_t most) {
  const double low = std::min(axis.from, axis.to), high = std::max(axis.from, axis.to);
  std::vector<Tick> ticks;
  if (axis.logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
    // One or two powers of ten leave room for numbers between them.
    if (last - first < 2 && most >= 4) {
      for (int power = first - 1; power <= last; ++power)
        for (const int digit : {1, 2, 5}) {
          const double at = digit * std::pow(10.0, power);
          if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9))
            ticks.push_back({at, fmt::format("{:g}", at)});
        }
      return ticks;
    }
    const int step = std::max(1, (last - first) / static_cast<int>(std::max<std::size_t>(most, 1)) + 1);
    for (int power = first; power <= last; power += step)
      ticks.push_back({std::pow(10.0, power), fmt::format("{:g}", std::pow(10.0, power))});
    return ticks;
  }
  if (!(high > low)) return {{low, fmt::format("{:g}", low)}};
  double step = std::pow(10.0, std::floor(std::log10(high - low)) - 1);
  if (axis.whole) step = std::max(step, 1.0);
  for (std::size_t i = 0; (high - low) / step > static_cast<double>(most) - 0.999; ++i)
    step *= i % 3 == 1 ? 2.5 : 2;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    ticks.push_back({k * step, fmt::format("{:g}", std::abs(k * step) < step / 2 ? 0 : k * step)});
  return ticks;
}

}  // namespace sinkscope
