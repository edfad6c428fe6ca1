// Pictures decoded, to look at their pixels.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinkscope::testing {

using Pixel = std::array<int, 3>;

struct DecodedPicture {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> bytes;  // [height, width, 3]

  Pixel at(std::size_t x, std::size_t y) const {
    const std::size_t i = 3 * (y * width + x);
    return {bytes[i], bytes[i + 1], bytes[i + 2]};
  }
  /// Of a place given as shares of width and height.
  Pixel at_share(double x, double y) const {
    return at(static_cast<std::size_t>(x * static_cast<double>(width)),
              static_cast<std::size_t>(y * static_cast<double>(height)));
  }
  /// Share of the pixels that are not white.
  double ink() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 3)
      count += bytes[i] != 255 || bytes[i + 1] != 255 || bytes[i + 2] != 255 ? 1 : 0;
    return static_cast<double>(count) / static_cast<double>(width * height);
  }
};

/// Fails the test where it is no PNG.
inline DecodedPicture decode_png(const std::string& content) {
  DecodedPicture picture;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, content.data(), content.size()) == 0) {
    ADD_FAILURE() << "no PNG: " << image.message;
    return picture;
  }
  image.format = PNG_FORMAT_RGB;
  picture.width = image.width;
  picture.height = image.height;
  picture.bytes.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  EXPECT_NE(png_image_finish_read(&image, &white, picture.bytes.data(), 0, nullptr), 0) << image.message;
  return picture;
}

/// The pixel of a panel at (x, y) in the units of its axes, by the description that lies beside a picture.
inline Pixel pixel_of(const DecodedPicture& picture, const nlohmann::json& panel, double x, double y) {
  const auto share = [](const nlohmann::json& axis, double at) {
    const double from = axis["from"], to = axis["to"];
    return (at - from) / (to - from);
  };
  const nlohmann::json& place = panel["place"];
  const double left = place["left"], right = place["right"], top = place["top"], bottom = place["bottom"];
  return picture.at_share(left + share(panel["x"], x) * (right - left),
                          bottom + share(panel["y"], y) * (top - bottom));
}

inline double distance(const Pixel& a, const Pixel& b) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace sinkscope::testing
