// Keys of single queries: which ones each of them attends most, and which ones are changed for it alone.
#pragma once

#include <cstdint>

namespace sinkscope {

/// What ends a list of keys that is shorter than its room. Lists are int32 [..., queries, room], keys counted
/// from the sequence's first one.
inline constexpr std::int32_t no_key = -1;

/// Keys changed for single queries, of N of them: [.., N, room].
struct RowKeys {
  const std::int32_t* keys = nullptr;  // null: none
  std::int64_t room = 0;
};

/// What is wanted of the rows A_i of a softmax over S keys, one by one, where column sums do not do. Nothing
/// costs nothing.
///
/// Key j of row i is a candidate iff f A_ij exceeds the mean of the others, f A_ik over the n - 1 keys k != j
/// that compete, by epsilon, and by more than 1e-6 of itself; f is S on sums, else 1. All n = S keys compete,
/// or all but i.
struct RowRequest {
  std::int64_t most = 0;       // room of the lists of candidates, the largest A_ij first; ties: lower index
  std::int64_t least = 0;      // room of lists of all listed keys, the smallest A_ij first; ties likewise
  bool every_key = false;      // every key is a candidate
  double epsilon = 0;          // >= 0
  bool on_sums = true;         // epsilon is compared with S A_ij, else with A_ij
  bool without_self = false;   // key i of row i neither competes nor is listed
  bool last = false;           // the row of each sequence's last key
  bool as_used = false;        // of the rows after the action, for lists and the last row; else raw
  bool changed_share = false;  // the sum of the raw A_ij over the keys that are changed for i
  const std::uint8_t* listed = nullptr;  // of all keys: 1 = may stand in a list; null: all may

  bool asks() const { return most > 0 || least > 0 || last || changed_share; }
};

}  // namespace sinkscope
