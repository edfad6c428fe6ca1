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

DigestContext new_digest() {
  DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw Error("the OpenSSL library offers no SHA-256");
  return context;
}

std::string hexadecimal(EVP_MD_CTX* context) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context, digest, &size) != 1) throw Error("SHA-256 could not be finished");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace

std::string sha256_of_files(std::span<const std::filesystem::path> files) {
  const DigestContext context = new_digest();
  std::vector<unsigned char> block(block_bytes);
  for (const auto& path : files) add_file(context.get(), path, block);
  return hexadecimal(context.get());
}

std::string sha256_of_text(std::string_view text) {
  const DigestContext context = new_digest();
  if (EVP_DigestUpdate(context.get(), text.data(), text.size()) != 1) throw Error("SHA-256 of a text failed");
  return hexadecimal(context.get());
}

}  // namespace sinkscope
