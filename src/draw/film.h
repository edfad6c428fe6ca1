// Films: a picture for each step, the text filling in below it, and the video of them through ffmpeg.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "draw/plot_options.h"

namespace sinkscope {

enum class VideoFormat { none, mp4, webm, gif };

/// Throws UsageError for a name that is none of mp4, webm, gif.
VideoFormat parse_video_format(std::string_view name);

struct FilmOptions {
  VideoFormat video = VideoFormat::none;
  bool frames = false;  ///< leave the pictures
  double rate = 10;     ///< pictures a second
  int width = 1280, height = 720;
};

/// One film of each run and each figure of options.figures (none: columns), or, with options.compare, of both
/// runs side by side: OUT/NAME.mp4, NAME.csv, NAME.json, and OUT/NAME-frames/00000.png, ... where frames are
/// asked for. As many pictures as the sample has steps (the longer one of two). Returns the paths. Throws
/// Error where ffmpeg is needed and missing, before anything is read, and as plot_runs().
std::vector<std::filesystem::path> film_runs(const PlotOptions& options, const FilmOptions& film,
                                             const PlotCallbacks& callbacks);

}  // namespace sinkscope
