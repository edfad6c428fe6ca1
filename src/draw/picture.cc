#include "draw/picture.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "draw/gnuplot.h"
#include "draw/picture_metrics.h"

namespace sinkscope {
namespace {

constexpr const char* text_colour = "#000000";
constexpr const char* note_colour = "#555555";
constexpr std::size_t most_group_columns = 14;
constexpr const char* sans = "Sans";
constexpr std::array<const char*, 3> grounds{"#fff2b3", "#ffd23f", "#ff9b21"};
constexpr const char* monospace = "Monospace";  // for flowing text: its columns are all of one width

// What an SVG's viewer draws with its own fonts; control characters have no place in XML.
const Glyphs& every_glyph() {
  static const Glyphs glyphs("20-7e a0-d7ff e000-fffd 10000-10ffff");
  return glyphs;
}

std::string point(double x, double y) { return fmt::format("{:.9g} {:.9g}", x, y); }

// Ticks' labels are formats of numbers.
std::string as_format(const std::string& text) {
  std::string format;
  for (const char c : text) format += c == '%' ? std::string("%%") : std::string(1, c);
  return format;
}

double share_of(const Axis& axis, double at) {
  if (axis.logarithmic)
    return (std::log(at) - std::log(axis.from)) / (std::log(axis.to) - std::log(axis.from));
  return (at - axis.from) / (axis.to - axis.from);
}

std::string range_of(const char* name, const Axis& axis) {
  return fmt::format("set {}range [{:.9g}:{:.9g}]\n{} logscale {}\n", name, axis.from, axis.to,
                     axis.logarithmic ? "set" : "unset", name);
}

}  // namespace

Axis cells_axis(std::string title, std::size_t count, bool down) {
  const double end = static_cast<double>(count) - 0.5;
  Axis axis{std::move(title), down ? end : -0.5, down ? -0.5 : end};
  axis.whole = true;
  return axis;
}

PictureFormat parse_picture_format(std::string_view name) {
  for (const PictureFormat format : {PictureFormat::png, PictureFormat::svg, PictureFormat::pdf})
    if (name == name_of(format)) return format;
  throw UsageError("--format \"{}\" is none of png, svg, pdf", name);
}

std::string_view name_of(PictureFormat format) {
  switch (format) {
    case PictureFormat::svg:
      return "svg";
    case PictureFormat::pdf:
      return "pdf";
    default:
      return "png";
  }
}

// Width of lines in the terminal's own units, from points of paper.
static double units(const PictureStyle& style, double points) {
  if (style.format == PictureFormat::png) return points * style.dots / 72;
  return style.format == PictureFormat::svg ? points * 96 / 72 : 1.5 * points;
}

std::string PictureScript::font(double points) const {
  // Pango counts 96 dots an inch, a PDF 72.
  const double size = style_.format == PictureFormat::png   ? points * style_.dots / 96
                      : style_.format == PictureFormat::svg ? units(style_, points)
                                                            : points * 72 / 96;
  return fmt::format("'{},{:.3g}'", points == flowing_points ? monospace : sans, size);
}

std::string PictureScript::quoted(std::string_view text) {
  if (style_.format == PictureFormat::svg) {
    bool ignored = false;
    return gnuplot_quoted(every_glyph().shown(text, ignored));
  }
  return gnuplot_quoted(Glyphs::installed().shown(text, missing_glyphs_));
}

// x and y in mm from the left upper corner.
void PictureScript::text_at(double x, double y, std::string_view text, double points, const char* more) {
  text_ += fmt::format("set label {} {} at screen {:.6f}, screen {:.6f} font {} {}\n", ++labels_,
                       quoted(text), x / style_.width, 1 - y / style_.height, font(points), more);
}

void PictureScript::line_at(double x0, double y0, double x1, double y1, double width,
                            const std::string& colour, int dash) {
  text_ += fmt::format(
      "set arrow {} from screen {:.6f}, screen {:.6f} to screen {:.6f}, screen {:.6f} nohead front lw {:.3g} "
      "dt {} lc rgb '{}'\n",
      ++arrows_, x0 / style_.width, 1 - y0 / style_.height, x1 / style_.width, 1 - y1 / style_.height,
      units(style_, width), dash, colour);
}

void PictureScript::begin_picture(const std::string& file) {
  const std::string base = font(axis_points);
  text_ += "reset\nset encoding utf8\n";
  switch (style_.format) {
    case PictureFormat::png:
      text_ += fmt::format(
          "set terminal pngcairo noenhanced size {:.0f},{:.0f} font {} pointscale {:.4g} dashlength {:.4g}\n",
          style_.width / 25.4 * style_.dots, style_.height / 25.4 * style_.dots, base, style_.dots / 150,
          style_.dots / 400);
      break;
    case PictureFormat::svg:
      text_ += fmt::format(
          "set terminal svg noenhanced standalone size {:.0f},{:.0f} font {} background '#ffffff'\n",
          style_.width / 25.4 * 96, style_.height / 25.4 * 96, base);
      break;
    case PictureFormat::pdf:
      text_ += fmt::format(
          "set terminal pdfcairo noenhanced size {:.4f}cm,{:.4f}cm font {} fontscale 1 pointscale 0.5\n",
          style_.width / 10, style_.height / 10, base);
      break;
  }
  text_ += fmt::format("set output {}\nset multiplot\nunset key\n", gnuplot_quoted(file));
  for (std::size_t i = 0; i < grounds.size(); ++i)
    text_ += fmt::format("set style textbox {} opaque fillcolor rgb '{}' noborder margins 0.1,0.1\n", i + 1,
                         grounds[i]);
  labels_ = arrows_ = 0;
}

void PictureScript::headings(const Picture& picture, const std::vector<PanelPlace>& places) {
  double y = 1 + 0.5 * line_height(title_points);
  text_at(2, y, shortened(picture.title, columns_in(style_.width - 3, title_points)), title_points, "left");
  y += 0.5 * line_height(title_points) + 0.5 * line_height(small_points);
  for (const std::string& line : note_lines(picture, style_)) {
    text_at(2, y, line, small_points, fmt::format("left tc rgb '{}'", note_colour).c_str());
    y += line_height(small_points);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Panel& panel = picture.panels[i];
    const double left = places[i].left * style_.width, right = places[i].right * style_.width;
    const double top = places[i].top * style_.height, bottom = places[i].bottom * style_.height;
    for (const Label& label : panel.labels)
      text_at(left + share_of(panel.x, label.at) * (right - left), top - 1, label.text, small_points,
              "rotate by 90 left");
    const auto fitting = [](const std::string& text, double length) {
      return shortened(text, columns_in(length, axis_points));
    };
    text_at(left, top - labels_height(picture) - 0.6 * line_height(axis_points),
            fitting(panel.title, right - left + 3), axis_points, "left");
    for (const Tick& group : panel.x.groups)
      text_at(left + share_of(panel.x, group.at) * (right - left), bottom + 3.2 + line_height(axis_points),
              shortened(group.text, most_group_columns), axis_points, "center");
    text_at((left + right) / 2, bottom + 7.5 + groups_height(picture),
            fitting(panel.x.title, right - left + 12), axis_points, "center");
    if (!panel.y.title.empty())
      text_at(i == 0 || places[i].left == places[0].left ? 2.2 : left - 10.8, (top + bottom) / 2,
              fitting(panel.y.title, bottom - top + 12), axis_points, "center rotate by 90");
  }
}

void PictureScript::legend(const Picture& picture) {
  const double begin = heading_height(picture, style_) -
                       static_cast<double>(legend_rows(picture, style_)) * line_height(axis_points);
  for (const LegendEntry& entry : placed_legend(picture, style_)) {
    const double y = begin + (static_cast<double>(entry.row) + 0.5) * line_height(axis_points);
    line_at(entry.x, y, entry.x + 5, y, entry.box ? 5 : 1.2, entry.colour, entry.dash);
    text_at(entry.x + 6, y, entry.title, axis_points, "left");
  }
}

std::string PictureScript::image(const Matrix& matrix, double from, double to, std::size_t row_scale,
                                 std::size_t column_scale, const std::string& place) {
  const std::vector<std::uint8_t> pixels = pixels_of(matrix, from, to, colours_, row_scale, column_scale);
  std::string plot = fmt::format(
      "'{}' binary skip={} array=({},{}) {} format='%uchar%uchar%uchar' using 1:2:3 with rgbimage",
      data_.path(), data_bytes_, matrix.columns * column_scale, matrix.rows * row_scale, place);
  data_.write(std::as_bytes(std::span(pixels)));
  data_bytes_ += pixels.size();
  return plot;
}

void PictureScript::colour_bar(const ColourAxis& axis, const PanelPlace& place) {
  const double left = place.right * style_.width + 4, right = left + 2.8;
  const double top = place.top * style_.height, bottom = place.bottom * style_.height;
  const Axis scale{axis.title, axis.from, axis.to, false, false, {}};
  const auto most = static_cast<std::size_t>((bottom - top) / 6);
  for (const Tick& tick : round_ticks(scale, std::max<std::size_t>(most, 2))) {
    const double y = bottom - share_of(scale, tick.at) * (bottom - top);
    line_at(right, y, right + 0.7, y, 0.5, text_colour);
    text_at(right + 1.2, y, tick.text, axis_points, "left");
  }
  text_at(left + 12.5, (top + bottom) / 2, shortened(axis.title, columns_in(bottom - top + 20, axis_points)),
          axis_points, "center rotate by 90");
  Matrix bar{256, 1, {}};
  for (int i = 255; i >= 0; --i)
    bar.values.push_back(static_cast<float>(axis.from + (axis.to - axis.from) * i / 255));
  text_ += fmt::format(
      "set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\nset tmargin at screen {:.6f}\n"
      "set bmargin at screen {:.6f}\nunset xtics\nunset ytics\nset border 15 lw {:.3g}\nunset logscale\n"
      "set xrange [0:1]\nset yrange [256:0]\n",
      left / style_.width, right / style_.width, 1 - place.top, 1 - place.bottom, units(style_, 0.5));
  text_ += "plot " + image(bar, axis.from, axis.to, 1, 2, "origin=(0.25,0.5) dx=0.5 dy=1") +
           " notitle\nunset label\nunset arrow\n";
  labels_ = arrows_ = 0;
}

void PictureScript::flow(const Picture& picture) {
  const std::vector<FlowPlace> places = flow_places(picture.flowing, flowing_columns(style_));
  const double begin = style_.height - flowing_height(picture) + 1;
  for (std::size_t i = 0; i < places.size() && places[i].line < picture.flowing_rows; ++i) {
    const FlowingText& token = picture.flowing[i];
    const std::string ground = token.ground == 0 ? "" : fmt::format("boxed bs {}", token.ground);
    text_at(2 + flowing_column_width(style_) * static_cast<double>(places[i].column),
            begin + (static_cast<double>(places[i].line) + 0.5) * line_height(flowing_points), token.text,
            flowing_points, fmt::format("left tc rgb '{}' {}", token.colour, ground).c_str());
  }
}

// The plot commands of one panel.
class PanelWriter {
 public:
  PanelWriter(PictureScript& script, const Picture& picture, const Panel& panel, const PanelPlace& place)
      : script_(script), picture_(picture), panel_(panel), place_(place), style_(script.style_) {}

  void write() {
    axes();
    if (panel_.matrix) matrix();
    for (const Boxes& boxes : panel_.boxes) box_plot(boxes);
    for (const Curve& curve : panel_.curves) curve_plot(curve);
    errors();
    dashes();
    marks();
    texts();
    if (plots_.empty()) plots_ = "NaN";
    script_.text_ += data_ + "plot " + plots_ + "\nunset label\nunset arrow\n";
    script_.labels_ = script_.arrows_ = 0;
  }

 private:
  void axes() {
    const double width = (place_.right - place_.left) * style_.width;
    const double height = (place_.bottom - place_.top) * style_.height;
    script_.text_ += fmt::format(
        "set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\nset tmargin at screen {:.6f}\n"
        "set bmargin at screen {:.6f}\nset border 15 lw {:.3g}\n",
        place_.left, place_.right, 1 - place_.top, 1 - place_.bottom, units(style_, 0.5));
    script_.text_ += range_of("x", panel_.x) + range_of("y", panel_.y);
    ticks("x", panel_.x, width / 9);
    ticks("y", panel_.y, height / 6);
  }

  void ticks(const char* name, const Axis& axis, double most) {
    const std::vector<Tick> all =
        axis.ticks.empty() ? round_ticks(axis, static_cast<std::size_t>(std::max(most, 2.0))) : axis.ticks;
    std::string list;
    for (const Tick& tick : all)
      list +=
          fmt::format("{}{} {:.9g}", list.empty() ? "" : ", ", script_.quoted(as_format(tick.text)), tick.at);
    script_.text_ += list.empty() ? fmt::format("unset {}tics\n", name)
                                  : fmt::format("set {}tics ({}) out nomirror scale 0.5 font {}\n", name,
                                                list, script_.font(axis_points));
  }

  void matrix() {
    const Matrix& cells = *panel_.matrix;
    const auto scale = [&](double length, std::size_t count) {
      return std::max<std::size_t>(1, static_cast<std::size_t>(length / 25.4 * style_.dots) / count);
    };
    const std::size_t rows = scale((place_.bottom - place_.top) * style_.height, cells.rows);
    const std::size_t columns = scale((place_.right - place_.left) * style_.width, cells.columns);
    const double dx = (panel_.x.to - panel_.x.from) / static_cast<double>(cells.columns * columns);
    const double dy = std::abs(panel_.y.to - panel_.y.from) / static_cast<double>(cells.rows * rows);
    const double top = std::min(panel_.y.from, panel_.y.to);
    add(script_.image(cells, picture_.colour->from, picture_.colour->to, rows, columns,
                      fmt::format("origin=({:.9g},{:.9g}) dx={:.9g} dy={:.9g}", panel_.x.from + dx / 2,
                                  top + dy / 2, dx, dy)));
  }

  std::string block() {
    std::string name = fmt::format("$block{}", blocks_++);
    data_ += name + " << END\n";
    return name;
  }
  void end_block() { data_ += "END\n"; }
  void add(const std::string& plot) { plots_ += (plots_.empty() ? "" : ", ") + plot + " notitle"; }

  void box_plot(const Boxes& boxes) {
    if (boxes.boxes.empty()) return;
    const std::string name = block();
    for (const Box& box : boxes.boxes)
      data_ += fmt::format("{} {} {}\n", point((box.left + box.right) / 2, (box.bottom + box.top) / 2),
                           point(box.left, box.right), point(box.bottom, box.top));
    end_block();
    add(fmt::format("{} using 1:2:3:4:5:6 with boxxyerror fs solid noborder lc rgb '{}'", name,
                    boxes.colour));
  }

  void curve_plot(const Curve& curve) {
    if (curve.points.empty()) return;
    const std::string name = block();
    for (const auto& [x, y] : curve.points) data_ += std::isnan(y) ? "\n" : point(x, y) + "\n";
    end_block();
    std::string style;
    if (curve.style == CurveStyle::steps) style = "steps";
    if (curve.style == CurveStyle::points) style = "points pt 7 ps 0.6";
    if (curve.style == CurveStyle::line) style = "lines";
    if (curve.style == CurveStyle::line_and_points) style = "linespoints pt 7 ps 0.6";
    add(fmt::format("{} using 1:2 with {} lw {:.3g} dt {} lc rgb '{}'", name, style, units(style_, 1),
                    curve.dash, curve.colour));
  }

  void errors() {
    if (panel_.errors.empty()) return;
    const std::string name = block();
    for (const ErrorBar& bar : panel_.errors)
      data_ += point(bar.x, bar.low) + fmt::format(" {:.9g}\n", bar.high - bar.low);
    end_block();
    add(fmt::format(
        "{} using 1:2:(0):3 with vectors heads nofilled size screen {:.5f},90 lw {:.3g} lc rgb '{}'", name,
        0.8 / style_.width, units(style_, 0.7), text_colour));
  }

  void dashes() {
    if (panel_.dashes.empty()) return;
    const std::string name = block();
    for (const auto& [x, y] : panel_.dashes) data_ += point(x - 0.5, y) + "\n";
    end_block();
    add(fmt::format("{} using 1:2:(1):(0) with vectors nohead lw {:.3g} lc rgb '#ffffff'", name,
                    units(style_, 0.8)));
  }

  void marks() {
    if (panel_.marks.empty()) return;
    const std::string name = block();
    for (const auto& [x, y] : panel_.marks) data_ += point(x, y) + "\n";
    end_block();
    add(fmt::format("{} using 1:2 with points pt 9 ps 0.6 lc rgb '#d55e00'", name));
  }

  void texts() {
    for (const PanelText& text : panel_.texts) {
      const double left = place_.left + share_of(panel_.x, text.x) * (place_.right - place_.left);
      const double top = place_.bottom - share_of(panel_.y, text.y) * (place_.bottom - place_.top);
      script_.text_at(left * style_.width, top * style_.height, text.text, small_points,
                      text.centred ? "center front" : "left front");
    }
  }

  PictureScript& script_;
  const Picture& picture_;
  const Panel& panel_;
  const PanelPlace& place_;
  const PictureStyle& style_;
  std::string data_, plots_;
  int blocks_ = 0;
};

void PictureScript::add(const Picture& picture, const PictureStyle& style, const std::string& file) {
  style_ = style;
  colours_ = colours_of(style.palette);
  const std::vector<PanelPlace> places = places_of(picture, style);
  begin_picture(file);
  headings(picture, places);
  legend(picture);
  flow(picture);
  for (std::size_t i = 0; i < places.size(); ++i)
    PanelWriter(*this, picture, picture.panels[i], places[i]).write();
  if (picture.colour)
    colour_bar(*picture.colour, places[std::min(picture.panels_per_row, places.size()) - 1]);
  text_ += "unset multiplot\nset output\n";
}

void PictureScript::run(const std::string& what) const { run_gnuplot(text_, what); }

}  // namespace sinkscope
