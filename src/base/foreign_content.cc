#include "base/foreign_content.h"

#include <algorithm>

namespace sinkscope {
namespace {

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// An HTML document may begin with blanks and in any case of letters.
bool begins_like_html(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  std::string head(text.substr(start, 14));
  std::transform(head.begin(), head.end(), head.begin(), ascii_lower);
  return head.starts_with("<!doctype html") || head.starts_with("<html") || head.starts_with("<head");
}

}  // namespace

std::optional<std::string> foreign_content(std::string_view first_bytes) {
  const std::string_view text = first_bytes.substr(0, foreign_content_bytes);
  if (text.starts_with("version https://git-lfs"))
    return "a Git LFS pointer, not the file itself: run git lfs pull in its repository";
  if (begins_like_html(text)) return "an HTML page, not the file itself: the download failed, repeat it";
  // Zip archives and protocol-2 pickles: what torch.save writes.
  if (text.starts_with("PK\x03\x04") || text.starts_with("\x80\x02"))
    return "a PyTorch archive: convert it to safetensors, no other weight format is read";
  return std::nullopt;
}

}  // namespace sinkscope
