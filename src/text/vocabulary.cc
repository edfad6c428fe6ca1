#include "text/vocabulary.h"

#include <sinkscope/error.h>

namespace sinkscope {

void Vocabulary::add(const std::string& token, std::int32_t id, const std::string& where) {
  if (const std::string* taken = token_of(id))
    throw Error("{}: {} and {} have the same id {}; every token needs one of its own", where,
                json_line(Json(*taken)), json_line(Json(token)), id);
  const auto [entry, is_new] = ids_.emplace(token, id);
  if (!is_new) throw Error("{}: {} stands there twice", where, json_line(Json(token)));
  const auto index = static_cast<std::size_t>(id);
  if (index >= by_id_.size()) by_id_.resize(index + 1, nullptr);
  by_id_[index] = &entry->first;
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view token) const {
  const auto entry = ids_.find(token);
  if (entry == ids_.end()) return std::nullopt;
  return entry->second;
}

const std::string* Vocabulary::token_of(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= by_id_.size()) return nullptr;
  return by_id_[static_cast<std::size_t>(id)];
}

Vocabulary read_vocabulary(const JsonPlace& place) {
  if (!place.value.is_object())
    throw Error("{} is {}; an object of tokens and their ids would be right", place.where,
                json_type_name(place.value));
  Vocabulary vocabulary;
  vocabulary.reserve(place.value.size());
  for (const auto& [token, id] : place.value.items()) {
    // Named only in an error: 150,000 entries need no words each.
    const bool is_id = id.is_number_unsigned() && id.get<std::uint64_t>() <= std::uint64_t{max_token_id};
    if (!is_id)
      throw Error("{}: the id of {} is {}; an integer from 0 to {} would be right", place.where,
                  json_line(Json(token)), id.is_number() ? json_line(id) : json_type_name(id), max_token_id);
    vocabulary.add(token, id.get<std::int32_t>(), place.where);
  }
  return vocabulary;
}

}  // namespace sinkscope
