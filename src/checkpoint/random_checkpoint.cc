#include "checkpoint/random_checkpoint.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "base/new_folder.h"
#include "checkpoint/random_weights.h"
#include "checkpoint/shards.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// What a thread fills at once. Larger than a cache, small beside what libtorch keeps resident.
constexpr std::size_t piece_bytes = std::size_t{2} << 20;

std::vector<StoredTensor> stored_tensors(const std::vector<RandomTensor>& weights, DType dtype) {
  std::vector<StoredTensor> tensors;
  for (const RandomTensor& weight : weights) tensors.push_back({weight.name, dtype, weight.shape});
  return tensors;
}

// Bytes [begin, begin + buffer.size()) of the tensor, every thread a piece of the buffer.
void fill_buffer(const RandomTensor& weight, const RandomCheckpoint& checkpoint, std::uint64_t begin,
                 std::span<std::byte> buffer) {
  const DType dtype = checkpoint.shape.config.weights_dtype;
  const auto fill_piece = [&](std::size_t at) {
    fill_random(weight, checkpoint.seed, (begin + at) / dtype_size(dtype), dtype,
                buffer.subspan(at, std::min(piece_bytes, buffer.size() - at)));
  };
  std::vector<std::jthread> others;
  for (std::size_t at = piece_bytes; at < buffer.size(); at += piece_bytes)
    others.emplace_back(fill_piece, at);
  fill_piece(0);
}

// Shows the share of all weight bytes that are written.
class Written {
 public:
  Written(std::uint64_t total, const std::function<void(double)>& progress)
      : total_(total), progress_(progress) {}
  void add(std::uint64_t bytes) {
    written_ += bytes;
    if (progress_) progress_(static_cast<double>(written_) / static_cast<double>(total_));
  }

 private:
  std::uint64_t total_;
  std::uint64_t written_ = 0;
  const std::function<void(double)>& progress_;
};

void write_tensor(SafetensorsWriter& writer, const RandomTensor& weight, std::uint64_t bytes,
                  const RandomCheckpoint& checkpoint, std::vector<std::byte>& buffer, Written& written) {
  for (std::uint64_t begin = 0; begin < bytes; begin += buffer.size()) {
    const std::size_t count = std::min<std::uint64_t>(buffer.size(), bytes - begin);
    const std::span<std::byte> part(buffer.data(), count);
    fill_buffer(weight, checkpoint, begin, part);
    writer.write(part);
    written.add(count);
  }
}

// The tensors of all shards together are `weights`, in their order.
void write_shards(const RandomCheckpoint& checkpoint, const std::vector<RandomTensor>& weights,
                  const std::vector<std::vector<StoredTensor>>& shards, const fs::path& folder,
                  Written written) {
  std::vector<std::byte> buffer(piece_bytes * static_cast<std::size_t>(std::max(1, checkpoint.threads)));
  auto weight = weights.begin();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    SafetensorsWriter writer(folder / shard_name(i, shards.size()), shards[i]);
    for (const StoredTensor& tensor : shards[i])
      write_tensor(writer, *weight++, tensor.byte_count(), checkpoint, buffer, written);
    writer.finish(/*flush=*/false);  // made again as quickly as flushed
  }
}

std::uint64_t total_bytes(const std::vector<StoredTensor>& tensors) {
  std::uint64_t total = 0;
  for (const StoredTensor& tensor : tensors) total += tensor.byte_count();
  return total;
}

// The nearest folder above that is there: where the file system can be asked.
fs::path existing_ancestor(const fs::path& folder) {
  std::error_code ignored;
  fs::path place = fs::absolute(folder, ignored);
  while (!fs::exists(place, ignored) && place.has_relative_path()) place = place.parent_path();
  return place;
}

}  // namespace

std::uint64_t needed_bytes(const RandomCheckpoint& checkpoint) {
  constexpr std::uint64_t for_small_files = std::uint64_t{1} << 20;
  constexpr std::uint64_t for_an_entry = 512;  // of a header and of the index
  const auto tensors = stored_tensors(checkpoint.shape.weights(checkpoint.shape.config),
                                      checkpoint.shape.config.weights_dtype);
  return total_bytes(tensors) + tensors.size() * for_an_entry + for_small_files;
}

void check_free_space(const fs::path& folder, std::uint64_t needed) {
  std::error_code failed;
  const fs::space_info space = fs::space(existing_ancestor(folder), failed);
  if (!failed && space.available < needed)
    throw Error("{} needs {:.3f} GB and its file system has {:.3f} GB free; fewer layers need less",
                folder.string(), static_cast<double>(needed) * 1e-9,
                static_cast<double>(space.available) * 1e-9);
}

WrittenCheckpoint write_random_checkpoint(const RandomCheckpoint& checkpoint, const fs::path& folder,
                                          const std::function<void(double)>& progress) {
  refuse_existing(folder);
  check_free_space(folder, needed_bytes(checkpoint));
  const ModelConfig& config = checkpoint.shape.config;
  const std::vector<RandomTensor> weights = checkpoint.shape.weights(config);
  const std::vector<StoredTensor> tensors = stored_tensors(weights, config.weights_dtype);
  const std::uint64_t bytes = total_bytes(tensors);
  const auto shards = plan_shards(tensors, checkpoint.shard_bytes);
  NewFolder made(folder);
  write_file_atomically(made.path() / "config.json", checkpoint.shape.config_json(config).dump(2) + "\n");
  write_file_atomically(made.path() / "generation_config.json",
                        checkpoint.shape.generation_json(config).dump(2) + "\n");
  if (shards.size() > 1)
    write_file_atomically(made.path() / "model.safetensors.index.json", weight_index_text(shards));
  write_shards(checkpoint, weights, shards, made.path(), Written(bytes, progress));
  made.finish();
  return {tensors.size(), shards.size(), bytes};
}

}  // namespace sinkscope
