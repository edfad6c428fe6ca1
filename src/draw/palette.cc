#include "draw/palette.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

namespace sinkscope {
namespace {

// Sampled from the maps of Nathaniel J. Smith, Stefan van der Walt and Eric Firing (viridis, CC0) and of
// Jamie R. Nunez, Christopher R. Anderton and Ryan S. Renslow (cividis); between them linear, which is off by
// two levels of 255 at most.
constexpr std::array<std::uint32_t, 16> viridis_points{
    0x440154, 0x481A6C, 0x472F7D, 0x414487, 0x39568C, 0x31688E, 0x2A788E, 0x23888E,
    0x1F988B, 0x22A884, 0x35B779, 0x54C568, 0x7AD151, 0xA5DB36, 0xD2E21B, 0xFDE725};
constexpr std::array<std::uint32_t, 10> cividis_points{0x00204D, 0x00336F, 0x39486B, 0x575C6D, 0x707173,
                                                       0x8A8779, 0xA69D75, 0xC4B56C, 0xE4CF5B, 0xFFEA46};

template <std::size_t count>
std::vector<Colour> between(const std::array<std::uint32_t, count>& points) {
  std::vector<Colour> colours(256);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double place = static_cast<double>(i * (count - 1)) / 255.0;
    const std::size_t low = std::min(static_cast<std::size_t>(place), count - 2);
    const double part = place - static_cast<double>(low);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto level = [&](std::size_t point) {
        return static_cast<double>(points[point] >> (16 - 8 * c) & 0xffU);
      };
      colours[i][c] = static_cast<std::uint8_t>(std::lround((1 - part) * level(low) + part * level(low + 1)));
    }
  }
  return colours;
}

}  // namespace

Palette parse_palette(std::string_view name) {
  for (const Palette palette : {Palette::viridis, Palette::cividis})
    if (name == name_of(palette)) return palette;
  throw UsageError("--palette \"{}\" is none of viridis, cividis", name);
}

std::string_view name_of(Palette palette) { return palette == Palette::viridis ? "viridis" : "cividis"; }

std::vector<Colour> colours_of(Palette palette) {
  return palette == Palette::viridis ? between(viridis_points) : between(cividis_points);
}

Colour colour_of(float value, double from, double to, const std::vector<Colour>& colours) {
  if (std::isnan(value)) return no_value;
  const double share = to > from ? (static_cast<double>(value) - from) / (to - from) : 0;
  const double last = static_cast<double>(colours.size() - 1);
  return colours[static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * last))];
}

std::string curve_colour(std::size_t i) {
  constexpr std::array<const char*, 7> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                               "#e69f00", "#56b4e9", "#000000"};
  return colours[i % colours.size()];
}

}  // namespace sinkscope
