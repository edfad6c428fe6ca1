#include "draw/film.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "draw/film_source.h"
#include "draw/gnuplot.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr double film_dots = 140;           // pixels an inch: 7-point text is 14 pixels high
constexpr std::size_t frames_a_script = 8;  // a script's pictures are in memory together
constexpr double most_text_share = 0.45;    // of a picture's height
constexpr double rest_height = 50;          // mm, of headings, axes and a small panel

std::string_view name_of(VideoFormat format) {
  switch (format) {
    case VideoFormat::mp4:
      return "mp4";
    case VideoFormat::webm:
      return "webm";
    case VideoFormat::gif:
      return "gif";
    default:
      return "none";
  }
}

void require_ffmpeg() {
  if (!run_process({"ffmpeg", "-version"}).found)
    throw Error(
        "ffmpeg is not installed, and it makes the videos; Debian's package ffmpeg has it, and --frames "
        "without "
        "--video leaves the pictures");
}

// A film of one run, or of two side by side.
struct Film {
  std::string name;  // of its files
  std::string figure;
  std::vector<const FilmSource*> sources;
  PictureStyle style;
  std::size_t frames = 0;
  double top = 0;  // of the values
  std::size_t text_rows = 0;
  bool text_cut = false;
};

Picture frame_picture(const Film& film, std::size_t frame) {
  Picture picture;
  picture.title = film.figure == "maps" ? "attention maps" : "attention received";
  picture.note =
      film.sources[0]->title() +
      (film.sources[0]->view().shape.maps() == 1
           ? ". Sinks on orange."
           : ". Sinks in any, a tenth, half of the maps on yellow to orange; triangles: in a tenth.");
  picture.square = film.figure == "maps";
  picture.panels_per_row = 2;
  const auto bars =
      static_cast<std::size_t>(0.8 * film.style.width / 25.4 * film.style.dots) / film.sources.size();
  for (const FilmSource* source : film.sources) {
    picture.panels.push_back(source->panel(frame, film.top, bars));
    const std::vector<FlowingText> text = source->text(frame, film.sources.size() > 1);
    picture.flowing.insert(picture.flowing.end(), text.begin(), text.end());
  }
  picture.flowing_rows = film.text_rows;
  if (film.figure == "maps") picture.colour = ColourAxis{"attention", 0, film.top};
  return picture;
}

// Draws all frames into the folder; scripts of a few frames each run side by side.
bool draw_frames(const Film& film, const fs::path& folder, const PlotCallbacks& callbacks) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> missing_glyphs{false};
  std::size_t done = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (;;) {
      const std::size_t first = next.fetch_add(frames_a_script);
      if (first >= film.frames) return;
      try {
        PictureScript script;
        const std::size_t last = std::min(first + frames_a_script, film.frames);
        for (std::size_t frame = first; frame < last; ++frame) {
          Picture picture = frame_picture(film, frame);
          fit_picture(picture, film.style);
          script.add(picture, film.style, (folder / fmt::format("{:05}.png", frame)).string());
        }
        script.run(fmt::format("frames {} to {} of {}", first, last - 1, film.name));
        if (script.missing_glyphs()) missing_glyphs = true;
        const std::lock_guard lock(mutex);
        done += last - first;
        if (callbacks.progress) callbacks.progress(done, film.frames);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = film.frames;
      }
    }
  };
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return missing_glyphs;
}

// In the folder of the frames, so that no name of the user's stands in ffmpeg's arguments, which give some
// characters a meaning.
fs::path encode(const Film& film, const FilmOptions& options, const fs::path& folder) {
  const std::string file = "film." + std::string(name_of(options.video));
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "ffmpeg",   "-hide_banner", "-loglevel",  "error",
        "-nostdin", "-y",           "-framerate", fmt::format("{:g}", options.rate),
        "-i",       "%05d.png"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run_process(arguments, folder.string());
    if (!result.succeeded)
      throw Error("ffmpeg did not make {}.{}: {}", film.name, name_of(options.video),
                  last_line(result.errors));
  };
  switch (options.video) {
    case VideoFormat::mp4:
      run({"-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags",
           "+faststart", "-fps_mode", "passthrough", file});
      break;
    case VideoFormat::webm:
      run({"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-crf", "30", "-b:v", "0",
           "-row-mt", "1", "-pix_fmt", "yuv420p", "-fps_mode", "passthrough", file});
      break;
    default:  // colours first: in one go ffmpeg would hold all pictures in memory
      run({"-vf", "palettegen=max_colors=128", "palette.gif"});
      run({"-i", "palette.gif", "-filter_complex", "[0][1]paletteuse=dither=none", "-fps_mode", "passthrough",
           file});
      fs::remove(folder / "palette.gif");
  }
  return folder / file;
}

OrderedJson film_json(const Film& film, const FilmOptions& options, const PlotOptions& plot,
                      const PlotCallbacks& callbacks) {
  const FilmSource& first = *film.sources[0];
  const RunNumbers nothing(plot.detection);
  OrderedJson json{{"format", 1}, {"version", SINKSCOPE_VERSION}, {"command", "plot"}};
  json["figure"] = film.figure;
  json["runs"] = OrderedJson::array();
  for (const FilmSource* source : film.sources) {
    const FigureInput input{source->run(), nothing, plot, callbacks};
    OrderedJson about{{"label", source->run().label}};
    about.update(begin_figure(input, film.figure, "").parts[0].about);
    if (source->maps())
      about["layers"] = {source->maps()->layer()}, about["heads"] = {source->maps()->head()};
    about["sample"] = source->run().sample;
    about["steps"] = source->steps();
    about["positions"] = source->view().shape.positions;
    json["runs"].push_back(std::move(about));
  }
  json["aggregation"] = begin_figure({first.run(), nothing, plot, callbacks}, film.figure, "").aggregation;
  json["aggregation"]["value"] =
      first.maps() ? "C of this layer and head; the film shows the whole map, which is in the sample's file"
                   : fmt::format("{} over the layers and heads, on the scale", name_of(plot.aggregate));
  json["aggregation"]["sinks"] = "number of the chosen maps in which the position is a sink";
  json["value"] = {{"from", 0}, {"to", film.top}};
  json["film"] = {{"frames", film.frames},
                  {"frames_per_second", options.rate},
                  {"width", options.width},
                  {"height", options.height},
                  {"text_cut", film.text_cut}};
  return json;
}

std::vector<fs::path> write_film(const Film& film, const FilmOptions& options, const PlotOptions& plot,
                                 const PlotCallbacks& callbacks) {
  std::vector<fs::path> paths;
  NewFolder folder(plot.out / ((options.frames ? "" : ".") + film.name + "-frames"));
  if (draw_frames(film, folder.path(), callbacks))
    callbacks.note("no installed font has some of the characters; they are written as <U+XXXX>");
  if (options.video != VideoFormat::none) {
    const fs::path video = plot.out / (film.name + "." + std::string(name_of(options.video)));
    const fs::path made = encode(film, options, folder.path());
    std::error_code error;
    fs::rename(made, video, error);
    if (error) throw Error("cannot write {}: {}", video.string(), error.message());
    paths.push_back(video);
  }
  if (options.frames) {
    folder.finish();
    paths.push_back(plot.out / (film.name + "-frames"));
  }
  std::string csv = film_csv_head;
  for (const FilmSource* source : film.sources) csv += source->csv_lines();
  paths.push_back(plot.out / (film.name + ".csv"));
  write_file_atomically(paths.back(), csv);
  paths.push_back(plot.out / (film.name + ".json"));
  write_file_atomically(paths.back(), json_text(film_json(film, options, plot, callbacks)));
  return paths;
}

Film film_of(std::vector<const FilmSource*> sources, const std::string& name, const std::string& figure,
             const FilmOptions& options, const PlotCallbacks& callbacks) {
  Film film{name, figure, std::move(sources), {}, 0, 0, 0, false};
  film.style.dots = film_dots;
  film.style.width = options.width / film_dots * 25.4;
  film.style.height = options.height / film_dots * 25.4;
  for (const FilmSource* source : film.sources) {
    film.frames = std::max(film.frames, source->steps());
    film.top = std::max(film.top, source->largest());
  }
  if (!(film.top > 0)) film.top = 1;
  std::vector<FlowingText> text;
  for (const FilmSource* source : film.sources) {
    const std::vector<FlowingText> more = source->text(0, film.sources.size() > 1);
    text.insert(text.end(), more.begin(), more.end());
  }
  const std::size_t lines = flowing_lines(text, flowing_columns(film.style));
  const double room = std::min(most_text_share * film.style.height, film.style.height - rest_height);
  film.text_rows = std::min(lines, static_cast<std::size_t>(std::max(1.0, room / text_line_height())));
  film.text_cut = film.text_rows < lines;
  if (film.text_cut)
    callbacks.note(
        fmt::format("{}: the pictures have room for {} of the text's {} lines; --size would give more", name,
                    film.text_rows, lines));
  return film;
}

}  // namespace

VideoFormat parse_video_format(std::string_view name) {
  for (const VideoFormat format : {VideoFormat::mp4, VideoFormat::webm, VideoFormat::gif})
    if (name == name_of(format)) return format;
  throw UsageError("--video \"{}\" is none of mp4, webm, gif", name);
}

std::vector<fs::path> film_runs(const PlotOptions& options, const FilmOptions& film,
                                const PlotCallbacks& callbacks) {
  std::vector<std::string> figures = options.figures;
  if (figures.empty()) figures.emplace_back("columns");
  for (const std::string& figure : figures)
    if (figure != "columns" && figure != "maps")
      throw UsageError("--figure {} has no film; columns and maps have one", figure);
  if (options.compare && options.runs.size() != 2)
    throw UsageError("--compare takes two runs, not {}", options.runs.size());
  require_gnuplot();
  if (film.video != VideoFormat::none) require_ffmpeg();
  Glyphs::installed();
  const std::vector<PlotRun> runs = open_plot_runs(options, callbacks);
  std::vector<fs::path> paths;
  for (const std::string& figure : figures) {
    std::vector<std::unique_ptr<FilmSource>> sources;
    for (const PlotRun& run : runs) {
      const std::string refusal = figure == "maps" ? maps_refusal(run, options) : "";
      if (!refusal.empty()) throw Error("no film of maps: {}", refusal);
      sources.push_back(std::make_unique<FilmSource>(run, options, callbacks, figure == "maps"));
    }
    std::vector<Film> films;
    if (options.compare)
      films.push_back(film_of({sources[0].get(), sources[1].get()}, figure, figure, film, callbacks));
    else
      for (const auto& source : sources)
        films.push_back(film_of({source.get()}, runs.size() > 1 ? source->run().label + "-" + figure : figure,
                                figure, film, callbacks));
    for (const Film& one : films) places_of(frame_picture(one, 0), one.style);
    for (const Film& one : films)
      for (fs::path& path : write_film(one, film, options, callbacks)) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace sinkscope
