// The Jinja templates of tasks, over the members of one problem.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/jinja/template.h"

namespace sinkscope {

class TaskTemplate {
 public:
  /// `where` names it in errors. Throws Error for what is no template.
  TaskTemplate(const std::string& text, const std::string& where);

  /// Throws Error naming the template when it prints a member that the problem lacks.
  std::string render(const nlohmann::ordered_json& document) const;

 private:
  jinja::Template template_;
};

}  // namespace sinkscope
