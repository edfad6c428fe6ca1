// Colours of numbers.
#include "draw/palette.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cmath>

namespace sinkscope {
namespace {

// CIE lightness of an sRGB colour, 0 to 100.
double lightness(const Colour& colour) {
  const auto linear = [](double level) {
    level /= 255;
    return level <= 0.04045 ? level / 12.92 : std::pow((level + 0.055) / 1.055, 2.4);
  };
  const double y = 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
  return y <= 0.008856 ? 903.3 * y : 116 * std::cbrt(y) - 16;
}

class Palettes : public ::testing::TestWithParam<Palette> {};

TEST_P(Palettes, GrowLighterEvenly) {
  const std::vector<Colour> colours = colours_of(GetParam());
  ASSERT_EQ(colours.size(), 256U);
  const double low = lightness(colours.front()), high = lightness(colours.back());
  EXPECT_GT(high - low, 70);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double even = low + (high - low) * static_cast<double>(i) / 255;
    EXPECT_NEAR(lightness(colours[i]), even, 4) << i;
    if (i == 0) continue;
    EXPECT_GE(lightness(colours[i]), lightness(colours[i - 1]) - 0.3) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Palettes, ::testing::Values(Palette::viridis, Palette::cividis));

TEST(Palette, ValuesLieBetweenTheEnds) {
  const std::vector<Colour> colours = colours_of(Palette::viridis);
  EXPECT_EQ(colour_of(0, 0, 10, colours), (Colour{0x44, 0x01, 0x54}));
  EXPECT_EQ(colour_of(10, 0, 10, colours), (Colour{0xfd, 0xe7, 0x25}));
  EXPECT_EQ(colour_of(99, 0, 10, colours), colours.back());
  EXPECT_EQ(colour_of(-1, 0, 10, colours), colours.front());
  EXPECT_EQ(colour_of(5, 0, 10, colours), colours[128]);
  EXPECT_EQ(colour_of(std::nanf(""), 0, 10, colours), no_value);
  EXPECT_EQ(colour_of(3, 3, 3, colours), colours.front()) << "no scale at all";
}

TEST(Palette, NamesAreChecked) {
  EXPECT_EQ(parse_palette("cividis"), Palette::cividis);
  EXPECT_THROW(parse_palette("jet"), UsageError);
}

TEST(Palette, CurvesHaveColoursOfTheirOwn) {
  EXPECT_NE(curve_colour(0), curve_colour(1));
  EXPECT_EQ(curve_colour(0), curve_colour(7));
}

}  // namespace
}  // namespace sinkscope
