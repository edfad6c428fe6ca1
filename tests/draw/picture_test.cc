// Pictures: what is in them lies where the layout says, and no text spoils them.
#include "draw/picture.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <filesystem>
#include <sstream>

#include "support/picture.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::content_of;
using testing::decode_png;
using testing::DecodedPicture;
using ::testing::HasSubstr;
using testing::Pixel;
using testing::TemporaryFolder;

constexpr Pixel white{255, 255, 255};

Picture heat_map(std::size_t rows, std::size_t columns) {
  Picture picture;
  picture.title = "title";
  picture.note = "note";
  Panel panel;
  panel.x = {"position", -0.5, static_cast<double>(columns) - 0.5};
  panel.y = {"step", static_cast<double>(rows) - 0.5, -0.5};
  panel.matrix = Matrix{rows, columns, std::vector<float>(rows * columns, 1)};
  picture.panels.push_back(std::move(panel));
  picture.colour = ColourAxis{"C", 0, 8};
  return picture;
}

DecodedPicture drawn(Picture picture, const PictureStyle& style) {
  const TemporaryFolder folder;
  fit_picture(picture, style);
  PictureScript script;
  script.add(picture, style, folder / "p.png");
  script.run("p.png");
  return decode_png(content_of(folder / "p.png"));
}

TEST(Picture, HasTheSizeOnPaper) {
  PictureStyle style;
  style.width = 86, style.height = 60, style.dots = 300;
  const DecodedPicture picture = drawn(heat_map(4, 5), style);
  EXPECT_EQ(picture.width, 1016U);
  EXPECT_EQ(picture.height, 709U);
  EXPECT_GT(picture.ink(), 0.2);
  EXPECT_EQ(picture.at(2, 2), white);
}

TEST(Picture, ASinkOfOneCellIsBrightWhereItShouldBe) {
  for (const std::size_t columns : {40U, 4096U}) {
    Picture picture = heat_map(64, columns);
    const std::size_t row = 20, column = columns / 3;
    picture.panels[0].matrix->values[row * columns + column] = 8;
    PictureStyle style;
    fit_picture(picture, style);
    const PanelPlace place = places_of(picture, style)[0];
    const DecodedPicture decoded = drawn(picture, style);
    const auto pixel = [&](double at_column, double at_row) {
      const Panel& panel = picture.panels[0];
      const double x = (at_column - panel.x.from) / (panel.x.to - panel.x.from);
      const double y = (at_row - panel.y.to) / (panel.y.from - panel.y.to);
      return decoded.at_share(place.left + x * (place.right - place.left),
                              place.top + y * (place.bottom - place.top));
    };
    const auto factor = picture.panels[0].column_factor;
    const double middle =
        static_cast<double>(column / factor * factor) + (static_cast<double>(factor) - 1) / 2;
    EXPECT_LT(testing::distance(pixel(middle, row), {0xfd, 0xe7, 0x25}), 12) << columns;
    EXPECT_GT(testing::distance(pixel(middle + 3.0 * static_cast<double>(factor), row), {0xfd, 0xe7, 0x25}),
              150);
    EXPECT_GT(testing::distance(pixel(middle, row + 2), {0xfd, 0xe7, 0x25}), 150);
  }
}

TEST(Picture, TheColourBarGoesFromDarkToBright) {
  Picture picture = heat_map(4, 5);
  const PictureStyle style;
  const PanelPlace place = places_of(picture, style)[0];
  const DecodedPicture decoded = drawn(picture, style);
  const double x = place.right + 5.2 / style.width;  // the bar's middle: 4 mm beside the panel, 2.8 mm wide
  EXPECT_LT(testing::distance(decoded.at_share(x, place.top + 0.01), {0xfd, 0xe7, 0x25}), 25);
  EXPECT_LT(testing::distance(decoded.at_share(x, place.bottom - 0.01), {0x44, 0x01, 0x54}), 25);
  EXPECT_LT(testing::distance(decoded.at_share(x, (place.top + place.bottom) / 2), {0x21, 0x90, 0x8d}), 25);
}

// Texts that gnuplot, XML or the fonts could stumble over.
std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts{"it's",
                                 "`touch hacked`",
                                 "\\\"{/=99 x}^2_3@~&",
                                 "$(touch hacked)",
                                 "a\nb\rc",
                                 "%d %s",
                                 "<b>&amp;\"",
                                 "'; !touch hacked; '",
                                 "#comment",
                                 "कंगण",
                                 "株式",
                                 "אבג",
                                 "e\u0301",
                                 "\xF0\x9F",
                                 "\xE2\x80",
                                 "a\x01z",
                                 "\u202Eabc",
                                 "😀",
                                 "unset multiplot"};
  const auto corpus = std::filesystem::path(SINKSCOPE_SHARED_DIR) / "data" / "corpus" / "udhr";
  if (std::filesystem::is_directory(corpus))
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
      std::istringstream words(content_of(entry.path()));
      std::string word;
      for (int i = 0; i < 4 && words >> word; ++i) texts.push_back(word);
    }
  return texts;
}

Picture full_of(const std::vector<std::string>& texts) {
  Picture picture = heat_map(4, texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    picture.panels[0].labels.push_back({static_cast<double>(i), texts[i], 1});
  for (const std::string& text : texts)
    picture.flowing.push_back({text, 12, "#000000", static_cast<int>(picture.flowing.size() % 4)});
  picture.flowing_rows = 12;
  picture.title = picture.note = picture.panels[0].title = texts[2] + texts[0];
  picture.panels[0].y.title = texts[3];
  for (std::size_t i = 0; i < 3; ++i)
    picture.panels[0].y.ticks.push_back({static_cast<double>(i), "%d" + texts[i]});
  return picture;
}

TEST(Picture, NoTextIsInterpretedOrSpoilsThePicture) {
  PictureStyle style;
  style.width = 400, style.height = 120, style.dots = 100;
  const DecodedPicture decoded = drawn(full_of(hostile_texts()), style);
  // A box that Pango draws for a missing glyph fills half of the picture with black.
  std::size_t black = 0;
  for (std::size_t y = 0; y < decoded.height; ++y)
    for (std::size_t x = 0; x < decoded.width; ++x) black += decoded.at(x, y) == Pixel{0, 0, 0} ? 1 : 0;
  EXPECT_LT(static_cast<double>(black), 0.05 * static_cast<double>(decoded.width * decoded.height));
  EXPECT_FALSE(std::filesystem::exists("hacked"));
}

TEST(Picture, ASvgIsWellFormedAndKeepsItsText) {
  const TemporaryFolder folder;
  Picture picture = full_of(hostile_texts());
  PictureStyle style;
  style.format = PictureFormat::svg;
  style.width = 400, style.height = 120;
  fit_picture(picture, style);
  PictureScript script;
  script.add(picture, style, folder / "p.svg");
  script.run("p.svg");
  const std::string svg = content_of(folder / "p.svg");
  EXPECT_THAT(svg, HasSubstr("कंगण"));
  EXPECT_THAT(svg, HasSubstr("&lt;b"));
  EXPECT_FALSE(script.missing_glyphs()) << "an SVG's viewer brings its own fonts";
  const std::string command =
      "/usr/bin/python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' " +
      (folder / "p.svg").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Picture, APdfIsOne) {
  const TemporaryFolder folder;
  Picture picture = heat_map(3, 3);
  PictureStyle style;
  style.format = PictureFormat::pdf;
  fit_picture(picture, style);
  PictureScript script;
  script.add(picture, style, folder / "p.pdf");
  script.run("p.pdf");
  EXPECT_THAT(content_of(folder / "p.pdf"), ::testing::StartsWith("%PDF"));
}

TEST(Picture, LabelsNeverOverlap) {
  Picture picture = heat_map(4, 500);
  for (int i = 0; i < 500; ++i)
    picture.panels[0].labels.push_back(
        {static_cast<double>(i), "a label that is too long", static_cast<double>(i % 37)});
  const PictureStyle style;
  fit_picture(picture, style);
  const std::vector<Label>& labels = picture.panels[0].labels;
  ASSERT_GT(labels.size(), 5U);
  const PanelPlace place = places_of(picture, style)[0];
  const double millimetres = (place.right - place.left) * style.width / 500;
  for (std::size_t i = 1; i < labels.size(); ++i)
    EXPECT_GE((labels[i].at - labels[i - 1].at) * millimetres, 2.6);
  EXPECT_EQ(text_columns(labels[0].text), 14U);
}

TEST(Picture, TooSmallASizeIsRefusedWithOneThatWouldDo) {
  PictureStyle style;
  style.width = style.height = 20;
  try {
    places_of(heat_map(4, 4), style);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("20 x 20 mm has no room"));
  }
}

TEST(Ticks, AreRoundAndFew) {
  const auto texts = [](const Axis& axis, std::size_t most) {
    std::string joined;
    for (const Tick& tick : round_ticks(axis, most)) joined += tick.text + " ";
    return joined;
  };
  EXPECT_EQ(texts({"", -0.5, 4095.5}, 6), "0 1000 2000 3000 4000 ");
  EXPECT_EQ(texts({"", 23.5, -0.5}, 6), "0 5 10 15 20 ");
  EXPECT_EQ(texts({"", 0, 1}, 6), "0 0.2 0.4 0.6 0.8 1 ");
  Axis whole{"", -0.5, 2.5};
  whole.whole = true;
  EXPECT_EQ(texts(whole, 9), "0 1 2 ");
  EXPECT_EQ(texts({"", 0.7, 2e5, true}, 9), "1 10 100 1000 10000 100000 ");
  EXPECT_EQ(texts({"", 0.4, 7, true}, 9), "0.5 1 2 5 ");
  EXPECT_EQ(texts({"", 3, 3}, 9), "3 ");
}

}  // namespace
}  // namespace sinkscope
