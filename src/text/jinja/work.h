// What bounds a rendering: the work it may do, how deep it may nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace sinkscope::jinja {

/// What is wrong at one place of a template, without the place: whoever knows the line adds it.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& text) : std::runtime_error(text) {}
};

/// What the template itself said with raise_exception.
class TemplateRefusal : public std::runtime_error {
 public:
  explicit TemplateRefusal(const std::string& text) : std::runtime_error(text) {}
};

/// Expressions and blocks may nest this deep in the text of a template. Real ones nest some ten deep; a sum
/// of 60 terms counts 60.
constexpr int max_syntax_depth = 200;
/// And this deep while it runs, macros that call macros included: it bounds the machine's stack.
constexpr int max_call_depth = 600;
/// Lists and dicts inside each other.
constexpr int max_value_depth = 100;

/// One step of the evaluator, in bytes: about what it costs next to copying text.
constexpr std::size_t step_cost = 16;
/// One element of a list.
constexpr std::size_t element_cost = 32;

/// What a rendering may still do, counted in bytes made or looked at; so it bounds time and memory both.
class Work {
 public:
  /// input_bytes: the size of what is rendered. A template may walk through it many times.
  explicit Work(std::size_t input_bytes)
      : left_((std::uint64_t{16} << 20) + std::uint64_t{128} * input_bytes) {}

  void charge(std::uint64_t bytes) {
    if (bytes > left_)
      throw TemplateError(
          "the template does more work than any chat template needs; it may loop without end");
    left_ -= bytes;
  }

 private:
  std::uint64_t left_;
};

}  // namespace sinkscope::jinja
