#include "text/post_processor.h"

#include <sinkscope/error.h>

#include <string>

#include "text/vocabulary.h"

namespace sinkscope {
namespace {

std::vector<std::int32_t> special_token_ids(const JsonPlace& processor, const std::string& name) {
  const JsonPlace ids = processor.at("special_tokens").at(name).at("ids");
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < ids.array_size(); ++i)
    out.push_back(static_cast<std::int32_t>(ids.element(i).as_integer(0, max_token_id)));
  return out;
}

void read_template(const JsonPlace& place, PostProcessor& processor) {
  const JsonPlace pieces = place.at("single");
  std::vector<std::int32_t> before, after;
  bool seen_text = false;
  for (std::size_t i = 0; i < pieces.array_size(); ++i) {
    const JsonPlace piece = pieces.element(i);
    if (const auto token = piece.find("SpecialToken")) {
      const auto ids = special_token_ids(place, token->at("id").as_string());
      auto& side = seen_text ? after : before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      if (seen_text || piece.at("Sequence").at("id").as_string() != "A")
        throw Error("{}: the template must hold the Sequence A exactly once and no other", pieces.where);
      seen_text = true;
    }
  }
  if (!seen_text) throw Error("{}: the template must hold the Sequence A exactly once", pieces.where);
  // An outer template goes around what earlier ones made.
  processor.before.insert(processor.before.begin(), before.begin(), before.end());
  processor.after.insert(processor.after.end(), after.begin(), after.end());
}

void read_steps(const JsonPlace& place, PostProcessor& processor, int depth) {
  const std::string& type = component_type(place);
  if (type == "Sequence") {
    if (depth >= max_sequence_depth) throw Error("{}: Sequences nest more than {} deep", place.where, depth);
    const JsonPlace members = place.at("processors");
    for (std::size_t i = 0; i < members.array_size(); ++i)
      read_steps(members.element(i), processor, depth + 1);
  } else if (type == "TemplateProcessing") {
    read_template(place, processor);
  } else if (type != "ByteLevel") {
    refuse_component(place, "post-processor");
  }
}

}  // namespace

PostProcessor read_post_processor(const JsonPlace& place) {
  PostProcessor processor;
  read_steps(place, processor, 0);
  return processor;
}

}  // namespace sinkscope
