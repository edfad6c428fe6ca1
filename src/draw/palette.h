// Colours: perceptually uniform maps of numbers, and a few that are told apart by colour-blind readers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

using Colour = std::array<std::uint8_t, 3>;

/// "viridis" or "cividis"; both grow in lightness evenly and keep their order for colour-blind readers and in
/// grey.
enum class Palette { viridis, cividis };

/// Throws UsageError for another name.
Palette parse_palette(std::string_view name);
std::string_view name_of(Palette palette);

/// The 256 colours from low to high.
std::vector<Colour> colours_of(Palette palette);

/// Where there is no value.
constexpr Colour no_value{0xe6, 0xe6, 0xe6};

/// The colour of a value between from and to; beyond them the nearest end's. NaN: no_value.
Colour colour_of(float value, double from, double to, const std::vector<Colour>& colours);

/// "#0072b2", ... of Okabe and Ito, for curves and bars; begins again after the last.
std::string curve_colour(std::size_t i);

}  // namespace sinkscope
