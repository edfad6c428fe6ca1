#include "eval/system_call_filter.h"

#include <seccomp.h>
#include <sinkscope/error.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sinkscope {
namespace {

// Memory that no limit of the sandbox counts: segments and messages that outlive the process, files without a
// file system.
constexpr const char* uncounted_memory[] = {"shmget", "semget", "msgget", "memfd_create", "memfd_secret"};

// Parts of the kernel that a solution never needs and that holes have been found in.
constexpr const char* kernel_surface[] = {
    "add_key", "bpf",   "io_uring_setup", "keyctl",  "mount",   "perf_event_open",   "process_vm_readv",
    "ptrace",  "setns", "request_key",    "umount2", "unshare", "process_vm_writev", "userfaultfd"};

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};

void refuse(void* filter, const char* name) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) throw Error("libseccomp does not know the system call {}", name);
  if (const int failure = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0); failure != 0)
    throw Error("libseccomp cannot refuse the system call {}: {}", name, std::strerror(-failure));
}

}  // namespace

Descriptor system_call_filter() {
  const std::unique_ptr<void, Release> filter(seccomp_init(SCMP_ACT_ALLOW));
  if (!filter) throw std::bad_alloc();
  for (const char* name : uncounted_memory) refuse(filter.get(), name);
  for (const char* name : kernel_surface) refuse(filter.get(), name);
  Descriptor file(::memfd_create("filter", MFD_CLOEXEC));
  if (file.number() < 0) throw Error("no memory for a filter of system calls: {}", std::strerror(errno));
  if (const int failure = seccomp_export_bpf(filter.get(), file.number()); failure != 0)
    throw Error("libseccomp cannot write its filter: {}", std::strerror(-failure));
  ::lseek(file.number(), 0, SEEK_SET);
  return file;
}

}  // namespace sinkscope
