// A folder that appears whole or not at all.
#pragma once

#include <filesystem>

namespace sinkscope {

/// Made beside its place under a temporary name; finish() gives it its own. Without finish() it goes again,
/// with all that is in it. Missing parents are made and stay.
class NewFolder {
 public:
  /// Throws Error when something is at `place` already or the folder cannot be made.
  explicit NewFolder(const std::filesystem::path& place);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to write until finish().
  const std::filesystem::path& path() const { return temporary_; }

  /// Throws Error when something has taken the place meanwhile.
  void finish();

 private:
  std::filesystem::path place_;
  std::filesystem::path temporary_;
};

/// Throws Error naming `place` when there is something already.
void refuse_existing(const std::filesystem::path& place);

}  // namespace sinkscope
