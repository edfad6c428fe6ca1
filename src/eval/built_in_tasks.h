// The descriptions of the benchmarks that this program knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// JSON of the form read_task() reads; empty for an unknown name.
std::string_view built_in_task(std::string_view name);

/// In alphabetical order.
std::vector<std::string> built_in_task_names();

}  // namespace sinkscope
