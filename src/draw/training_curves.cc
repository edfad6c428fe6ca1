#include "draw/training_curves.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "base/text_parts.h"
#include "draw/gnuplot.h"
#include "draw/matrix.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// null: nothing was measured.
void add_number(const std::string& name, const Json& value, double step, const std::string& where,
                TrainingCurves& curves) {
  if (value.is_null()) return;
  if (!value.is_number() || !(std::abs(value.get<double>()) <= largest_drawn))
    throw Error("{}: {} is {}; null or a number of at most {} is right", where, name,
                value.is_number() ? json_line(value) : json_type_name(value), largest_drawn);
  curves[name].emplace_back(step, value.get<double>());
}

// Numbers of one line, those of a list by their place, those of the object `probe` likewise.
void add_numbers(const Json& object, double step, const std::string& where, TrainingCurves& curves) {
  for (const auto& [name, value] : object.items()) {
    if (name == "step") continue;
    if (name == "probe" && value.is_object()) {
      add_numbers(value, step, where, curves);
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i)
        add_number(fmt::format("{}/{}", name, i), value[i], step, where, curves);
    } else {
      add_number(name, value, step, where, curves);
    }
  }
}

// Not before the one of the line before.
double step_of(const Json& line, double before, const std::string& where) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number())
    throw Error("{} should be an object with a step", where);
  const auto step = line["step"].get<double>();
  if (!(step >= before && step <= largest_drawn))
    throw Error("{}: step is {}; steps begin at 0 and do not go back", where, json_line(line["step"]));
  return step;
}

std::string csv_of(const TrainingCurves& curves) {
  std::string text = "curve,step,value\n";
  for (const auto& [name, points] : curves)
    for (const auto& [step, value] : points) text += fmt::format("{},{:.0f},{:.9g}\n", name, step, value);
  return text;
}

// Of Okabe and Ito, told apart by colour-blind readers, too.
constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#000000"};

struct Curve {
  std::string name, title;
};

struct Panel {
  std::string title;
  bool logarithmic = false;
  std::vector<Curve> curves;
};

// A data block of each curve, and a plot of those that there are.
std::string panel_script(const Panel& panel, const TrainingCurves& curves, int number) {
  std::string data, plots;
  int drawn = 0;
  for (const Curve& curve : panel.curves) {
    const auto found = curves.find(curve.name);
    if (found == curves.end()) continue;
    const std::string block = fmt::format("$panel{}_{}", number, drawn);
    data += block + " << END\n";
    for (const auto& [step, value] : found->second) data += fmt::format("{} {:.9g}\n", step, value);
    data += "END\n";
    plots += fmt::format("{} {} using 1:2 with lines lw 2 lc rgb '{}' title {}", drawn == 0 ? "plot" : ",",
                         block, colours[static_cast<std::size_t>(drawn) % std::size(colours)],
                         gnuplot_quoted(curve.title));
    ++drawn;
  }
  if (drawn == 0) return {};
  return fmt::format("{}set title {}\n{}set yrange [{}:*]\n{}\n", data, gnuplot_quoted(panel.title),
                     panel.logarithmic ? "set logscale y\n" : "unset logscale y\n",
                     panel.logarithmic ? "*" : "0", plots);
}

Panel massive_panel(const TrainingCurves& curves) {
  Panel panel{"norm of the leading position entering a layer / mean of the others", false, {}};
  for (int layer = 0; curves.contains(fmt::format("massive_ratio/{}", layer)); ++layer)
    panel.curves.push_back({fmt::format("massive_ratio/{}", layer), fmt::format("layer {}", layer)});
  return panel;
}

}  // namespace

TrainingCurves read_training_curves(const fs::path& metrics) {
  const std::string text = read_file(metrics);
  // A run that trains now may have written half of the last line.
  const std::string_view whole = std::string_view(text).substr(0, text.rfind('\n') + 1);
  TrainingCurves curves;
  std::size_t number = 0;
  double step = 0;
  for (const std::string_view line : lines_of(whole)) {
    const std::string where = fmt::format("{} line {}", metrics.string(), ++number);
    if (is_blank(line)) continue;
    const Json json = parse_json(line, where);
    step = step_of(json, step, where);
    add_numbers(json, step, where, curves);
  }
  if (curves.empty()) throw Error("{} holds no numbers yet", metrics.string());
  return curves;
}

fs::path plot_training(const fs::path& metrics, const fs::path& folder) {
  const TrainingCurves curves = read_training_curves(metrics);
  write_file_atomically(folder / "training.csv", csv_of(curves));
  const Panel panels[] = {
      {"loss", true, {{"loss", "what is minimised"}, {"token_loss", "nats a predicted token"}}},
      {"gradient norm, before clipping", true, {{"gradient_norm", "norm"}}},
      {"sinks",
       false,
       {{"sink_rate", "share of heads with a sink"},
        {"alpha_first", "mean attention to the first position"},
        {"slot_rate", "share of heads whose slot is a sink"},
        {"sink_share", "share of keys that are sinks"}}},
      massive_panel(curves)};
  const fs::path picture = folder / "training.png";
  const fs::path temporary = folder / ".training.png.tmp";
  std::string script = fmt::format(
      "set terminal pngcairo size 1400,900 font 'Sans,11'\nset output {}\nset multiplot layout 2,2\n"
      "set xlabel 'step'\nset grid lc rgb '#dddddd'\nset key top right\n",
      gnuplot_quoted(temporary.string()));
  int number = 0;
  for (const Panel& panel : panels) script += panel_script(panel, curves, ++number);
  script += "unset multiplot\n";
  run_gnuplot(script, picture.string());
  fs::rename(temporary, picture);
  return picture;
}

}  // namespace sinkscope
