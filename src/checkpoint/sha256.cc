#include <openssl/evp.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace sinkscope {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

using FileHandle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

// Read, not mapped: 16 GB of touched pages would count as ours.
void add_file(EVP_MD_CTX* context, const std::filesystem::path& path, std::vector<unsigned char>& block) {
  const FileHandle file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  while (true) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), file.get());
    if (count == 0 && std::ferror(file.get()) != 0)
      throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
    if (count == 0) return;
    if (EVP_DigestUpdate(context, block.data(), count) != 1)
      throw Error("SHA-256 of {} failed", path.string());
  }
}

}  // namespace

std::string sha256_of_files(std::span<const std::filesystem::path> files) {
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw Error("the OpenSSL library offers no SHA-256");
  std::vector<unsigned char> block(block_bytes);
  for (const auto& path : files) add_file(context.get(), path, block);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &size) != 1) throw Error("SHA-256 could not be finished");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace sinkscope
