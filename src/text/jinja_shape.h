// Chat templates are Jinja programs. This recognises known ones without running them.
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

/// A spelling of the program that does not depend on what does not change its output: white space inside and
/// (under trim_blocks and lstrip_blocks, as transformers sets them) around tags, trimming marks, kinds of
/// quotes and escapes in strings, `m.role` or `m['role']`, `loop.first` or `loop.index0 == 0`, comments, an
/// alias of `messages`, the name of the loop's variable. Equal results render alike; unequal ones may.
std::string jinja_shape(std::string_view program);

}  // namespace sinkscope
