#include "eval/task_template.h"

#include <sinkscope/error.h>

#include "text/jinja/json_value.h"

namespace sinkscope {
namespace {

// As the harness sets Jinja2 up.
constexpr jinja::Dialect dialect{.trim_blocks = false, .keep_trailing_newline = true, .strict = true};

}  // namespace

TaskTemplate::TaskTemplate(const std::string& text, const std::string& where)
    : template_(text, where, "docs/tokenizers.md lists what a template may use", dialect) {}

std::string TaskTemplate::render(const nlohmann::ordered_json& document) const {
  jinja::Work work(document.dump().size());
  jinja::Context context;
  for (const auto& [name, value] : document.items())
    context.names.emplace_back(name, jinja::value_of(work, value));
  return template_.render(context, work);
}

}  // namespace sinkscope
