// Reads a tokenizer.json and, if it loads, encodes, decodes and labels with it. The bytes behind the first
// NUL byte, if there is one, are the text to encode.
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <cstdlib>
#include <string_view>

namespace {

constexpr std::string_view default_text = "Hello  w\xC3\xB6rld\t12\r\n\n \xF0\x9F\xA6\x8A\xFF<s>a\xCC\x81";

void exercise(const sinkscope::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, true);
  for (const auto id : ids)
    if (id < 0) std::abort();
  (void)tokenizer.decode(ids);
  (void)tokenizer.decode(ids, true);
  for (const auto id : ids)
    if (tokenizer.label(id).empty()) std::abort();
  (void)tokenizer.label(-1);
  (void)tokenizer.label(tokenizer.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string_view text = end == std::string_view::npos ? default_text : input.substr(end + 1);
  try {
    exercise(sinkscope::Tokenizer::parse(input.substr(0, end), "fuzz"), text);
  } catch (const sinkscope::Error&) {
    // Refusing is right; crashing, hanging and undefined behaviour are not.
  }
  return 0;
}
