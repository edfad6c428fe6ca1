#include "eval/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "support/environment.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Why there is no sandbox on this machine; empty if there is one.
const std::string& missing() {
  static const std::string reason = [] {
    try {
      require_sandbox();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  return reason;
}

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!missing().empty()) GTEST_SKIP() << missing();
  }
};

// Short, for programs that end by their limit alone.
SandboxLimits short_limits() {
  SandboxLimits limits;
  limits.seconds = 1;
  return limits;
}

// Processes on this machine whose command line holds the word.
int processes_with(const std::string& word) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    count += testing::content_of(entry.path() / "cmdline").find(word) != std::string::npos;
  }
  return count;
}

// The kernel takes a namespace down behind the back of whoever killed its first process.
bool gone_soon(const std::string& word) {
  for (int i = 0; i < 100; ++i) {
    if (processes_with(word) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST_F(Sandbox, AProgramPassesWhenItComesToItsEnd) {
  const ProgramResult result = run_python("import math\nassert math.isqrt(17) == 4\nprint('here')");
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_EQ(result.reason, "passed");
  EXPECT_EQ(result.output, "");  // still in the interpreter's buffer when the verdict is there
  EXPECT_LT(result.seconds, 3);
}

TEST_F(Sandbox, AnExceptionFailsAndIsNamed) {
  EXPECT_EQ(run_python("assert 1 == 2, 'one is\\nnot two'").reason, "AssertionError: one is not two");
  EXPECT_EQ(run_python("nothing").reason, "NameError: name 'nothing' is not defined");
  EXPECT_THAT(run_python("def f(:").reason, StartsWith("SyntaxError: "));
  EXPECT_THAT(run_python(std::string("a = 1\0b", 7)).reason, HasSubstr("null bytes"));
  EXPECT_EQ(run_python("raise KeyError('\\udc80' * 1000)").outcome, Outcome::failed);
  EXPECT_EQ(run_python("input()").reason, "EOFError: EOF when reading a line");
}

// code_eval runs programs with empty globals, so this block is never entered.
TEST_F(Sandbox, TheProgramIsNotMain) {
  EXPECT_EQ(run_python("if __name__ == '__main__': raise ValueError").outcome, Outcome::passed);
}

TEST_F(Sandbox, LeavingEarlyDoesNotPass) {
  EXPECT_THAT(run_python("import sys; sys.exit(0)").reason, StartsWith("SystemExit"));
  EXPECT_EQ(run_python("import os; os._exit(0)").reason, "left with status 0 before its tests were over");
  EXPECT_EQ(run_python("import os; os.execv('/bin/true', ['true'])").outcome, Outcome::failed);
  EXPECT_EQ(run_python("import os; os.write(3, b'P' + bytes(32)); os._exit(0)").reason,
            "wrote to the descriptor of the verdict");
  EXPECT_EQ(run_python("import os; os.write(3, bytes(100000))").outcome, Outcome::failed);
  EXPECT_EQ(run_python("import os\nif os.fork(): os._exit(0)\nassert False").outcome, Outcome::failed);
  EXPECT_EQ(run_python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").reason,
            "killed by signal 11 (Segmentation fault)");
}

TEST_F(Sandbox, AProgramHasItsTimeAndNoMore) {
  SandboxLimits limits = short_limits();
  EXPECT_EQ(run_python("import time; time.sleep(0.5)", limits).outcome, Outcome::passed);
  limits.seconds = 0.25;
  const ProgramResult late = run_python("import time; time.sleep(0.5)", limits);
  EXPECT_EQ(late.outcome, Outcome::timed_out);
  EXPECT_EQ(late.reason, "still running after 0.25 s");
  EXPECT_GE(late.seconds, 0.25);
  EXPECT_LT(late.seconds, 2);
}

TEST_F(Sandbox, RunsAreRepeatable) {
  const std::string program = "print(list({'a', 'b', 'c', 'd', 'e'}), flush=True); raise ValueError";
  EXPECT_EQ(run_python(program).output, run_python(program).output);
}

// The zoo. Each of them fails, and what it was after did not happen.

TEST_F(Sandbox, ForkBomb) {
  const std::string bomb =
      "import os\n"
      "while True:\n"
      "  try: os.fork()\n"
      "  except OSError: pass\n";
  EXPECT_EQ(run_python(bomb, short_limits()).outcome, Outcome::timed_out);
  const std::string counted =
      "import os, time\n"
      "for n in range(100):\n"
      "  if os.fork() == 0: time.sleep(60)\n";
  EXPECT_EQ(run_python(counted).reason, "BlockingIOError: [Errno 11] Resource temporarily unavailable");
  const std::string threads =
      "import threading, time\n"
      "for n in range(100): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n";
  EXPECT_THAT(run_python(threads).reason, HasSubstr("can't start new thread"));
}

TEST_F(Sandbox, ProcessesWithinTheLimitRun) {
  const std::string program =
      "import subprocess, threading\n"
      "assert subprocess.run(['echo', 'a'], capture_output=True).stdout == b'a\\n'\n"
      "thread = threading.Thread(target=lambda: None); thread.start(); thread.join()\n";
  EXPECT_EQ(run_python(program).reason, "passed");
}

TEST_F(Sandbox, EndlessOutput) {
  const ProgramResult result = run_python("while True: print('x' * 1000)");
  EXPECT_EQ(result.outcome, Outcome::too_much_output);
  EXPECT_EQ(result.output.size(), std::size_t{1} << 20);
}

TEST_F(Sandbox, DiskFill) {
  EXPECT_EQ(
      run_python("with open('/tmp/a', 'wb') as f:\n  for _ in range(64): f.write(bytes(1 << 20))").reason,
      "OSError: [Errno 27] File too large");
  for (const std::string folder : {"/tmp", "/dev/shm"})
    EXPECT_EQ(run_python("for i in range(64):\n  with open('" + folder +
                         "/%d' % i, 'wb') as f: f.write(bytes(1 << 20))")
                  .reason,
              "OSError: [Errno 28] No space left on device");
  for (const std::string folder : {"/", "/usr", "/usr/lib", "/dev", "/etc"})
    EXPECT_THAT(run_python("open('" + folder + "/a', 'w')").reason, HasSubstr("Read-only file system"));
}

TEST_F(Sandbox, Network) {
  EXPECT_THAT(run_python("import socket; socket.create_connection(('1.1.1.1', 80), 2)").reason,
              HasSubstr("Network is unreachable"));
  EXPECT_THAT(run_python("import socket; socket.getaddrinfo('example.com', 80)").reason,
              StartsWith("gaierror"));
}

TEST_F(Sandbox, NothingOfOursIsToBeSeen) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "secret", "x");
  for (const std::string& path :
       {(folder / "secret").string(), std::string("/home"), std::string("/root"), std::string("/etc/shadow"),
        std::filesystem::current_path().string(), std::string(SINKSCOPE_SOURCE_DIR)})
    EXPECT_THAT(run_python("import os; os.stat('" + path + "')").reason, StartsWith("FileNotFoundError"))
        << path;
  const testing::Environment variable("SINKSCOPE_SECRET", "x");
  EXPECT_EQ(run_python("import os; assert 'SINKSCOPE_SECRET' not in os.environ").outcome, Outcome::passed);
}

// An open file of this process would be a way out.
TEST_F(Sandbox, NoDescriptorOfOursIsOpen) {
  const testing::TemporaryFolder folder;
  const int open_file = ::open((folder / "a").c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(open_file, 0);
  EXPECT_EQ(run_python("import os\nfor n in range(4, 1024):\n"
                       "  try: os.fstat(n)\n"
                       "  except OSError: continue\n"
                       "  raise ValueError(n)\n")
                .reason,
            "passed");
  ::close(open_file);
}

TEST_F(Sandbox, KillingTheParent) {
  EXPECT_EQ(run_python("import os, time; os.kill(os.getppid(), 9); time.sleep(60)", short_limits()).outcome,
            Outcome::timed_out);
  // There is nobody else to kill.
  EXPECT_THAT(run_python("import os; os.kill(-1, 9)").reason, StartsWith("ProcessLookupError"));
}

TEST_F(Sandbox, IgnoringSigtermAndLeavingProcessesBehind) {
  const std::string program =
      "import os, signal, subprocess, time\n"
      "for s in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)\n"
      "subprocess.Popen(['sleep', '98761.5'], start_new_session=True)\n";
  EXPECT_EQ(run_python(program + "time.sleep(60)", short_limits()).outcome, Outcome::timed_out);
  EXPECT_TRUE(gone_soon("98761.5"));
  EXPECT_EQ(run_python(program).outcome, Outcome::passed);
  EXPECT_TRUE(gone_soon("98761.5"));
}

TEST_F(Sandbox, HugeAllocation) {
  EXPECT_THAT(run_python("a = bytearray(1 << 40)").reason, StartsWith("MemoryError"));
  EXPECT_THAT(run_python("a = []\nwhile True: a.append(bytes(1 << 20))").reason, StartsWith("MemoryError"));
  for (const std::string call : {"shmget(0, 1 << 20, 0o1600)", "memfd_create(b'a', 0)"})
    EXPECT_EQ(run_python("import ctypes\nassert ctypes.CDLL(None)." + call + " >= 0").outcome,
              Outcome::failed)
        << call;
  SandboxLimits small;
  small.memory_bytes = std::int64_t{64} << 20;
  EXPECT_THAT(run_python("a = bytes(80 << 20)", small).reason, StartsWith("MemoryError"));
  EXPECT_EQ(run_python("a = bytes(80 << 20)").outcome, Outcome::passed);
}

TEST_F(Sandbox, EndlessRecursion) {
  EXPECT_EQ(run_python("def f(): f()\nf()").reason, "RecursionError: maximum recursion depth exceeded");
}

TEST_F(Sandbox, ALimitOfOpenFilesHolds) {
  SandboxLimits limits;
  limits.open_files = 16;
  EXPECT_THAT(run_python("import os\na = [os.dup(1) for _ in range(20)]", limits).reason,
              HasSubstr("Too many open files"));
  EXPECT_EQ(run_python("import os\na = [os.dup(1) for _ in range(20)]").outcome, Outcome::passed);
}

TEST_F(Sandbox, ManyProgramsSideBySideKeepTheirOrder) {
  std::vector<SandboxedProgram> programs;
  for (int i = 0; i < 6; ++i) programs.push_back({"raise ValueError(" + std::to_string(i) + ")", {}});
  std::vector<std::size_t> finished;
  const auto results = run_all(programs, 3, [&](std::size_t count) { finished.push_back(count); });
  ASSERT_EQ(results.size(), 6U);
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].reason, "ValueError: " + std::to_string(i));
  EXPECT_THAT(finished, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Sandbox, WorkersWorkSideBySide) {
  const SandboxedProgram program{"import time; time.sleep(1)", {}};
  const auto begin = std::chrono::steady_clock::now();
  run_all({program, program, program, program}, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3500));
}

TEST_F(Sandbox, NothingToRunIsNothing) { EXPECT_TRUE(run_all({}, 4).empty()); }

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(SandboxRefusal, WithoutBubblewrapNothingRuns) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"choom", "setpriv", "prlimit"})
    std::filesystem::create_symlink("/bin/true", folder / name);
  const testing::Environment path("PATH", folder.path().c_str());
  const std::string expected =
      "generated code runs only in a sandbox, and the program bwrap that it needs is not installed; Debian's "
      "package "
      "bubblewrap has it (apt-get install bubblewrap)";
  EXPECT_EQ(error_of(require_sandbox), expected);
  EXPECT_EQ(error_of([] { run_python("pass"); }), expected);
  EXPECT_EQ(error_of([] { run_all({{"pass", {}}, {"pass", {}}}, 2); }), expected);
}

// Stands for a kernel without user namespaces.
TEST(SandboxRefusal, ASandboxThatCannotBeBuiltIsNoFailedProgram) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "bwrap",
                      "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
  std::filesystem::permissions(folder / "bwrap", std::filesystem::perms::owner_all |
                                                     std::filesystem::perms::others_read |
                                                     std::filesystem::perms::others_exec);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const testing::Environment path("PATH", (folder.path().string() + ":/usr/bin:/bin").c_str());
  EXPECT_THAT(error_of([] { run_python("pass"); }),
              HasSubstr("no sandbox could be built: bwrap: No permissions to create new namespace"));
  EXPECT_THAT(error_of(require_sandbox), HasSubstr("user.max_user_namespaces"));
}

// Stands for a bubblewrap that builds no sandbox: what the look from inside is for.
TEST(SandboxRefusal, ASandboxThatDoesNotHoldIsRefused) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "bwrap",
                      "#!/bin/sh\nwhile [ \"$1\" != --chdir ]; do shift; done\nshift 3\nexec \"$@\"\n");
  std::filesystem::permissions(folder / "bwrap", std::filesystem::perms(0755));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const testing::Environment path("PATH", (folder.path().string() + ":/usr/bin:/bin").c_str());
  EXPECT_THAT(error_of(require_sandbox), HasSubstr("does not hold here (AssertionError: "));
}

TEST(SandboxRefusal, LimitsTooSmallAreUsageErrors) {
  SandboxLimits none;
  none.processes = 0;
  EXPECT_THROW(run_python("pass", none), UsageError);
  SandboxLimits endless;
  endless.seconds = 0;
  EXPECT_THROW(run_python("pass", endless), UsageError);
}

}  // namespace
}  // namespace sinkscope
