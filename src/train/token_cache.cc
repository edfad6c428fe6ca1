#include "train/token_cache.h"

#include <fcntl.h>
#include <sinkscope/error.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/files.h"
#include "base/output_file.h"
#include "base/random_bits.h"
#include "ops/parallel.h"
#include "text/training_text.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view magic = "SINKTOK1";
struct Header {
  char magic[8];
  std::uint64_t documents, tokens, key;
};

struct Encoded {
  std::vector<std::int32_t> ids;
  std::int64_t prompt_length = 0;
};

// What the file is made of, in memory while it is made but for the ids.
struct Index {
  std::vector<std::uint64_t> begins{0};
  std::vector<std::int32_t> prompt_lengths;
};

std::vector<Encoded> encode_all(const TextEncoder& encoder, const std::vector<TrainingText>& texts) {
  std::vector<Encoded> encoded(texts.size());
  parallel_for(static_cast<std::int64_t>(texts.size()), [&](std::int64_t i) {
    const TrainingText& text = texts[static_cast<std::size_t>(i)];
    Encoded& result = encoded[static_cast<std::size_t>(i)];
    result.ids = encode_document(encoder, text.prompt, text.text, result.prompt_length);
  });
  return encoded;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// The ids of all texts, to `ids`; what is known of them, returned.
Index write_ids(TrainingTextReader& reader, const std::vector<fs::path>& files, const TextEncoder& encoder,
                OutputFile& ids, const std::function<void(double)>& progress) {
  Index index;
  TextChunk chunk;
  while (reader.next(chunk)) {
    const std::string name = files[chunk.file].string();
    for (const Encoded& document : encode_all(encoder, training_texts_of(std::move(chunk), name))) {
      ids.write(bytes_of(document.ids));
      index.begins.push_back(index.begins.back() + document.ids.size());
      index.prompt_lengths.push_back(static_cast<std::int32_t>(document.prompt_length));
    }
    if (progress && reader.total_bytes() > 0)
      progress(static_cast<double>(reader.read_bytes()) / static_cast<double>(reader.total_bytes()));
  }
  return index;
}

void append_file(const fs::path& from, OutputFile& to) {
  const MappedFile file(from);
  to.write(file.bytes());
}

// Goes with the object.
struct TemporaryFile {
  fs::path path;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

template <typename T>
std::span<const T> take(std::span<const std::byte>& bytes, std::uint64_t count, const fs::path& file) {
  if (count > bytes.size() / sizeof(T))
    throw Error("{} is cut short: it should hold {} numbers more; remove it, and it will be made again",
                file.string(), count);
  const auto* data = static_cast<const T*>(static_cast<const void*>(bytes.data()));
  bytes = bytes.subspan(static_cast<std::size_t>(count) * sizeof(T));
  return {data, static_cast<std::size_t>(count)};
}

}  // namespace

std::vector<std::int32_t> encode_document(const TextEncoder& encoder,
                                          const std::optional<std::string>& prompt, const std::string& text,
                                          std::int64_t& prompt_length) {
  std::vector<std::int32_t> ids;
  const auto append = [&](const std::string& part) {
    const std::vector<std::int32_t> more = encoder.tokenizer.encode(part);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  if (encoder.bos && !(prompt && encoder.prompts)) ids.push_back(*encoder.bos);
  if (prompt && encoder.prompts) {
    const std::array<Message, 1> messages{Message{"user", *prompt}};
    append(apply_chat_template(*encoder.prompts, messages));
  } else if (prompt) {
    append(*prompt + "\n");
  }
  prompt_length = prompt ? static_cast<std::int64_t>(ids.size()) : 0;
  append(text);
  ids.push_back(encoder.eos);
  return ids;
}

std::uint64_t token_cache_key(const std::vector<fs::path>& files, const fs::path& tokenizer_folder) {
  std::string seen;
  for (const fs::path& file : files) {
    std::error_code failed;
    const auto size = fs::file_size(file, failed);
    const auto time = fs::last_write_time(file, failed).time_since_epoch().count();
    seen += fmt::format("{} {} {}\n", fs::absolute(file).string(), failed ? 0 : size, failed ? 0 : time);
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"})
    if (fs::exists(tokenizer_folder / name)) seen += read_file(tokenizer_folder / name);
  return hash_of(seen);
}

void write_token_cache(const std::vector<fs::path>& files, const TextEncoder& encoder, std::uint64_t key,
                       const fs::path& cache, const std::function<void(double)>& progress) {
  const TemporaryFile ids_file{fs::path(cache) += ".ids.tmp"}, whole{fs::path(cache) += ".tmp"};
  TrainingTextReader reader(files);
  constexpr int make = O_WRONLY | O_CREAT | O_TRUNC;
  Index index;
  {
    OutputFile ids(ids_file.path, make, ids_file.path.string());
    index = write_ids(reader, files, encoder, ids, progress);
    ids.close();
  }
  if (index.prompt_lengths.empty())
    throw Error("{} holds no text to train on", files.empty() ? "the data" : files.front().string());
  OutputFile output(whole.path, make, cache.string());
  Header header{{}, index.prompt_lengths.size(), index.begins.back(), key};
  std::memcpy(header.magic, magic.data(), magic.size());
  output.write(std::as_bytes(std::span(&header, 1)));
  output.write(bytes_of(index.begins));
  output.write(bytes_of(index.prompt_lengths));
  append_file(ids_file.path, output);
  output.sync();
  output.close();
  fs::rename(whole.path, cache);
}

TokenCache::TokenCache(const fs::path& path) : file_(path) {
  std::span<const std::byte> bytes = file_.bytes();
  Header header{};
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    throw Error("{} is no token cache; remove it, and it will be made again", path.string());
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  key_ = header.key;
  if (header.documents == 0 || header.documents > bytes.size())
    throw Error("{} is cut short; remove it, and it will be made again", path.string());
  begins_ = take<std::uint64_t>(bytes, header.documents + 1, path);
  prompt_lengths_ = take<std::int32_t>(bytes, header.documents, path);
  ids_ = take<std::int32_t>(bytes, header.tokens, path);
  for (std::size_t d = 0; d < prompt_lengths_.size(); ++d)
    if (begins_[d] > begins_[d + 1] || prompt_lengths_[d] < 0 ||
        static_cast<std::uint64_t>(prompt_lengths_[d]) > begins_[d + 1] - begins_[d])
      throw Error("{}: document {} has no sound place; remove the file, and it will be made again",
                  path.string(), d);
  if (begins_.front() != 0 || begins_.back() != ids_.size())
    throw Error("{}: the documents do not fill it; remove the file, and it will be made again",
                path.string());
}

TokenDocument TokenCache::document(std::int64_t number) const {
  const auto i = static_cast<std::size_t>(number);
  return {ids_.subspan(static_cast<std::size_t>(begins_[i]),
                       static_cast<std::size_t>(begins_[i + 1] - begins_[i])),
          prompt_lengths_[i]};
}

}  // namespace sinkscope
