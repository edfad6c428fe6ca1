// A picture as panels of matrices, curves and bars on axes, in the units of paper, and gnuplot's script of
// it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draw/matrix.h"
#include "draw/palette.h"
#include "draw/process.h"
#include "draw/text_fit.h"

namespace sinkscope {

enum class PictureFormat { png, svg, pdf };

/// Throws UsageError for another name.
PictureFormat parse_picture_format(std::string_view name);
std::string_view name_of(PictureFormat format);

struct PictureStyle {
  PictureFormat format = PictureFormat::png;
  double width = 86;   ///< mm
  double height = 70;  ///< mm
  double dots = 300;   ///< PNG: pixels an inch; of the others: cells an inch that are drawn at most
  Palette palette = Palette::viridis;
};

struct Tick {
  double at = 0;
  std::string text;
};

struct Axis {
  std::string title;
  double from = 0;  ///< left or bottom
  double to = 1;    ///< right or top; below `from` where the axis goes the other way
  bool logarithmic = false;
  bool whole = false;             ///< its values are whole numbers, and so are the ticks
  std::vector<Tick> ticks = {};   ///< empty: round numbers, as many as fit
  std::vector<Tick> groups = {};  ///< of x: a second line of texts, below those of the ticks
};

/// Of a matrix's cells, each one unit wide around its number; `down`: of rows, the first at the top.
Axis cells_axis(std::string title, std::size_t count, bool down = false);

enum class CurveStyle { line, steps, points, line_and_points };

struct Curve {
  std::string title;
  std::vector<std::pair<double, double>> points;  ///< a y that is NaN leaves a gap
  CurveStyle style = CurveStyle::line;
  std::string colour;
  int dash = 1;  ///< 1: none; 2, 3, ... kinds of dashes
};

struct Box {
  double left = 0, right = 0, bottom = 0, top = 0;
};

struct Boxes {
  std::string title;
  std::vector<Box> boxes;
  std::string colour;
};

struct ErrorBar {
  double x = 0, low = 0, high = 0;
};

struct PanelText {
  double x = 0, y = 0;
  std::string text;
  bool centred = false;  ///< else it begins at x
};

struct Panel {
  std::string title;
  Axis x, y;
  std::optional<Matrix> matrix;  ///< fills the axes; row 0 at the top
  std::vector<Boxes> boxes;
  std::vector<Curve> curves;
  std::vector<ErrorBar> errors;
  std::vector<PanelText> texts;
  std::vector<std::pair<double, double>> dashes;  ///< white, one unit of x wide, around (x, y)
  std::vector<std::pair<double, double>> marks;   ///< triangles that point at (x, y) from below
  std::vector<Label> labels;                      ///< above the panel, upright; those that fit
  // Filled in by fit_picture().
  std::size_t row_factor = 1, column_factor = 1;  ///< source cells to a drawn one
};

struct ColourAxis {
  std::string title;
  double from = 0, to = 1;
};

/// A token of the text below a film's picture.
struct FlowingText {
  std::string text;
  std::size_t columns = 1;  ///< reserved, whatever stands there now
  std::string colour;
  int ground = 0;            ///< 1 to 3: on a coloured ground, the stronger the larger
  bool begins_line = false;  ///< whatever room there is on the line before
};

struct Picture {
  std::string title;
  std::string note;  ///< how the numbers were made; small, below the title
  std::vector<Panel> panels;
  std::size_t panels_per_row = 2;
  std::optional<ColourAxis> colour;
  bool square = false;                    ///< units of x and y are equally long
  std::vector<FlowingText> flowing = {};  ///< below the panels
  std::size_t flowing_rows = 0;           ///< lines kept free for it
};

/// Of a panel's axes, as shares of the picture's width and height from its left upper corner.
struct PanelPlace {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// Where the panels lie. A picture that is not large enough for them throws UsageError.
std::vector<PanelPlace> places_of(const Picture& picture, const PictureStyle& style);

/// A height in which square panels take all the width; of others row_height for each row of panels.
double natural_height(const Picture& picture, const PictureStyle& style, double row_height);

/// Makes fewer cells, by maximum, where the style has no room for all, and leaves out labels that would
/// overlap others; shortens them to 14 columns.
void fit_picture(Picture& picture, const PictureStyle& style);

/// Columns of text that a line of a film's text has.
std::size_t flowing_columns(const PictureStyle& style);
/// mm.
double text_line_height();
/// Lines that tokens so wide take.
std::size_t flowing_lines(const std::vector<FlowingText>& flowing, std::size_t columns);

/// A script that draws pictures, each to a file.
class PictureScript {
 public:
  /// The picture must have been fitted to the style. Throws UsageError where it is too small.
  void add(const Picture& picture, const PictureStyle& style, const std::string& file);

  /// Characters that no font has were written as numbers.
  bool missing_glyphs() const { return missing_glyphs_; }

  void run(const std::string& what) const;

 private:
  friend class PanelWriter;
  std::string quoted(std::string_view text);
  std::string font(double points) const;
  std::string image(const Matrix& matrix, double from, double to, std::size_t row_scale,
                    std::size_t column_scale, const std::string& place);
  void text_at(double x, double y, std::string_view text, double points, const char* more);
  void line_at(double x0, double y0, double x1, double y1, double width, const std::string& colour,
               int dash = 1);
  void begin_picture(const std::string& file);
  void headings(const Picture& picture, const std::vector<PanelPlace>& places);
  void legend(const Picture& picture);
  void colour_bar(const ColourAxis& axis, const PanelPlace& place);
  void flow(const Picture& picture);

  PictureStyle style_;
  std::vector<Colour> colours_;
  MemoryFile data_;
  std::size_t data_bytes_ = 0;
  std::string text_;
  int labels_ = 0, arrows_ = 0;
  bool missing_glyphs_ = false;
};

/// Round numbers between the ends, at most `most`: 1, 2 or 5 times a power of ten apart; of a logarithmic
/// axis the powers of ten.
std::vector<Tick> round_ticks(const Axis& axis, std::size_t most);

}  // namespace sinkscope
