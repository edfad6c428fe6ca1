#include "hub/checksum.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace sinkscope {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

using FileHandle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

std::string git_checksum(const std::filesystem::path& path) {
  const FileHandle file(std::fopen(path.c_str(), "rb"), std::fclose);
  struct stat status {};
  if (!file || ::fstat(::fileno(file.get()), &status) != 0)
    throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) != 1)
    throw Error("the OpenSSL library offers no SHA-1");
  const std::string head = fmt::format("blob {}", status.st_size);
  EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1);  // the zero byte too
  std::vector<unsigned char> block(block_bytes);
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get()))
    EVP_DigestUpdate(context.get(), block.data(), count);
  if (std::ferror(file.get()) != 0) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &size) != 1) throw Error("SHA-1 of {} failed", path.string());
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace

std::string checksum_of_file(const std::filesystem::path& file, ChecksumKind kind) {
  if (kind == ChecksumKind::sha256) return sha256_of_files(std::span(&file, 1));
  return git_checksum(file);
}

}  // namespace sinkscope
