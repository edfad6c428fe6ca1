#include "text/piece_cache.h"

#include <algorithm>
#include <functional>

namespace sinkscope {

// The slot that holds piece, or the empty one where it would go.
std::size_t PieceCache::slot_of(std::string_view piece) const {
  std::size_t index = std::hash<std::string_view>{}(piece) % slots_.size();
  while (slots_[index].key_size != 0) {
    const Slot& slot = slots_[index];
    if (std::string_view(keys_).substr(slot.key_begin, slot.key_size) == piece) break;
    index = (index + 1) % slots_.size();
  }
  return index;
}

bool PieceCache::find(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (slots_.empty()) return false;
  const Slot& slot = slots_[slot_of(piece)];
  if (slot.key_size == 0) return false;
  const std::int32_t* begin = ids_.data() + slot.ids_begin;
  ids.insert(ids.end(), begin, begin + slot.id_count);
  return true;
}

void PieceCache::add(std::string_view piece, std::span<const std::int32_t> ids) {
  if (pieces_ >= slots_.size() / 2) {
    constexpr std::size_t growth = 8;
    slots_.assign(std::clamp(slots_.size() * growth, fewest_slots, most_slots), Slot{});
    keys_.clear();
    ids_.clear();
    pieces_ = 0;
  }
  slots_[slot_of(piece)] = {static_cast<std::uint32_t>(keys_.size()), static_cast<std::uint32_t>(ids_.size()),
                            static_cast<std::uint16_t>(piece.size()), static_cast<std::uint16_t>(ids.size())};
  keys_.append(piece);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++pieces_;
}

}  // namespace sinkscope
