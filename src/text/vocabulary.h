// Token strings and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/json_fields.h"

namespace sinkscope {

/// Hash that lets a map of std::string be asked with a std::string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Ids are at most this: sixteen times the largest vocabularies in use, and small enough for tables indexed
/// by id.
constexpr std::int32_t max_token_id = (1 << 22) - 1;

/// One string for each id and one id for each string; ids may have holes. Movable, not copyable.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  void reserve(std::size_t tokens) { ids_.reserve(tokens); }
  /// Throws Error when the id or the string is taken already. `where` begins the error. 0 <= id <=
  /// max_token_id.
  void add(const std::string& token, std::int32_t id, const std::string& where);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The string of an id; nullptr for ids that stand for nothing, negative ones included.
  const std::string* token_of(std::int32_t id) const;
  /// Highest id + 1.
  std::int32_t end_id() const { return static_cast<std::int32_t>(by_id_.size()); }
  std::size_t size() const { return ids_.size(); }

 private:
  StringMap<std::int32_t> ids_;
  std::vector<const std::string*> by_id_;  // the keys of ids_, whose nodes stay where they are
};

/// Reads {"token": id, ...}.
Vocabulary read_vocabulary(const JsonPlace& place);

}  // namespace sinkscope
