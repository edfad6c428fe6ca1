// Remembers the ids of short pieces of text: most words of a text come again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// A hash table in three flat arrays. When half full it starts anew, larger up to a limit. Not for several
/// threads at once.
class PieceCache {
 public:
  /// Longer pieces seldom come again.
  static constexpr std::size_t longest_piece = 64;

  /// Appends the ids of piece to ids and returns true, or returns false when it is not known.
  bool find(std::string_view piece, std::vector<std::int32_t>& ids) const;
  /// Remembers a piece that find did not know; piece.size() <= longest_piece.
  void add(std::string_view piece, std::span<const std::int32_t> ids);

 private:
  struct Slot {
    std::uint32_t key_begin = 0;
    std::uint32_t ids_begin = 0;
    std::uint16_t key_size = 0;  // 0: empty, since pieces are not
    std::uint16_t id_count = 0;
  };
  static constexpr std::size_t fewest_slots = std::size_t{1} << 10;  // cheap to clear for a short prompt
  static constexpr std::size_t most_slots = std::size_t{1} << 16;

  std::size_t slot_of(std::string_view piece) const;

  std::vector<Slot> slots_;
  std::string keys_;
  std::vector<std::int32_t> ids_;
  std::size_t pieces_ = 0;
};

}  // namespace sinkscope
