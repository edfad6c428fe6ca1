// Random numbers without a state: any place of any stream can be read alone, so that work can be cut,
// repeated and taken up again without writing a generator down.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinkscope {

/// The generator wyrand (Wang Yi), read at any place of its sequence: the counter goes up by an odd number,
/// the two halves of one product mix it.
constexpr std::uint64_t random_step = 0xa0761d6478bd642f;
constexpr std::uint64_t random_bits(std::uint64_t counter) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(counter) * (counter ^ 0xe7037ed1a0b428db);
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

/// FNV-1a.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// Streams of one seed that lie far apart, by a name and a number: "order" of epoch 3, "noise" of step 70.
class RandomPlaces {
 public:
  RandomPlaces(std::uint64_t seed, std::string_view name, std::uint64_t number)
      : begin_(random_bits(hash_of(name) + random_bits(seed * random_step)) +
               random_bits(number * random_step + 1)) {}

  std::uint64_t bits(std::uint64_t place) const { return random_bits(begin_ + place * random_step); }
  /// In [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t place) const { return static_cast<double>(bits(place) >> 11) * 0x1p-53; }
  /// In [0, count).
  std::uint64_t below(std::uint64_t place, std::uint64_t count) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(bits(place)) * count >> 64);
  }

 private:
  std::uint64_t begin_;
};

}  // namespace sinkscope
