// A figure: what is drawn, as a table, and how it was aggregated; and its three files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "draw/picture.h"

namespace sinkscope {

/// One run's share of a figure.
struct FigurePart {
  std::string run;            ///< its label
  std::vector<Panel> panels;  ///< as many in every part of a figure
  /// Rows of the table behind the column `run`; of matrices empty, whose rows are their drawn cells.
  std::vector<std::vector<nlohmann::ordered_json>> rows = {};
  nlohmann::ordered_json about = nlohmann::ordered_json::object();
};

struct Figure {
  std::string name;   ///< heatmap, tracks, ...: begins its files' names
  std::string title;  ///< what is shown
  std::string note;   ///< how it was aggregated, as the picture says it
  std::vector<FigurePart> parts;
  /// Names of the table's columns behind `run`. Of matrices: of their rows, columns and values.
  std::vector<std::string> columns;
  nlohmann::ordered_json aggregation = nlohmann::ordered_json::object();
  std::optional<std::string> colour;  ///< title of the colour scale of matrices
  bool square = false;
  bool overlays = false;  ///< curves of several runs fit into one panel
  double height = 65;     ///< mm, of a picture with one row of panels in a single column
};

/// The parts of figures of the same kind as one figure: side by side on the same axes, or, where `overlay`,
/// their curves in one panel, titles beginning with the run's label.
Figure joined(std::vector<Figure> figures, bool overlay);

/// Width of a picture in which panels stand side by side; in a narrower one they stand one below the other.
constexpr double wide = 130;  // mm

/// The picture of a figure so wide, its colour scale from 0 to the largest value.
Picture picture_of(const Figure& figure, double width);

struct FigureFiles {
  std::filesystem::path folder;
  std::string stem;             ///< FOLDER/STEM.png, STEM.csv, STEM.json
  nlohmann::ordered_json head;  ///< of the JSON: format, version, command
};

/// Draws; nothing is written before the picture is there, and each file appears whole. Returns their paths,
/// the picture's first. `missing_glyphs`: becomes true where characters had to be written as numbers.
std::vector<std::filesystem::path> write_figure(const Figure& figure, const PictureStyle& style,
                                                const FigureFiles& files, bool& missing_glyphs);

}  // namespace sinkscope
