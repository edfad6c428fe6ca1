// Sizes on paper that the layout and the script share: millimetres and points.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/picture.h"

namespace sinkscope {

constexpr double title_points = 8, axis_points = 7, small_points = 6, flowing_points = 6.5;
constexpr double colour_bar_width = 15;  // mm: bar, numbers and title

constexpr double millimetres(double points) { return points * 25.4 / 72; }
constexpr double line_height(double points) { return 1.25 * millimetres(points); }
/// An upper bound for text of so many columns in the sans serif fonts there are, but for capitals alone.
constexpr double width_of(std::size_t columns, double points) {
  return 0.62 * millimetres(points) * static_cast<double>(columns);
}
constexpr std::size_t columns_in(double width, double points) {
  return width <= 0 ? 0 : static_cast<std::size_t>(width / (0.62 * millimetres(points)));
}

/// mm that a column of flowing text takes: fonts of fixed width have whole pixels.
double flowing_column_width(const PictureStyle& style);

struct LegendEntry {
  std::string title, colour;
  bool box = false;
  int dash = 1;
  double x = 0;  // mm
  std::size_t row = 0;
};

/// Where a token of flowing text stands.
struct FlowPlace {
  std::size_t line = 0, column = 0;
};
std::vector<FlowPlace> flow_places(const std::vector<FlowingText>& flowing, std::size_t columns);

std::vector<LegendEntry> placed_legend(const Picture& picture, const PictureStyle& style);
std::size_t legend_rows(const Picture& picture, const PictureStyle& style);
std::vector<std::string> note_lines(const Picture& picture, const PictureStyle& style);
/// Title, note and legend.
double heading_height(const Picture& picture, const PictureStyle& style);
double flowing_height(const Picture& picture);
/// Of the second line of texts below x axes, where a panel has one.
double groups_height(const Picture& picture);
/// Of the upright labels above panels.
double labels_height(const Picture& picture);

}  // namespace sinkscope
