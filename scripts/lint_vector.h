// For clang-tidy only, forced in before every file. clang 14 instantiates the members of a constexpr
// std::vector (as libstdc++ 12 has it in C++20) at its declaration, on which libtorch 1.13's vector of a
// forward-declared class fails; g++ does not. So here, and only here, std::vector is not constexpr.
#pragma once
#include <memory>
#include <string>
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_not_constexpr  // declared constexpr before
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
