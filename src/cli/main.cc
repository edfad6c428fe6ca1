#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/commands.h"
#include "cli/option_table.h"

namespace {

// A standard stream that the caller closed would hand its number to the next file opened, and messages would
// end up in that file.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != stream) ::_exit(1);
}

// oneDNN's own threads, which `bench` uses for what the machine can do at best, wait by spinning unless this
// variable says otherwise before the program is loaded: beside a busy neighbour one small product then takes
// ten times as long as it should.
void let_threads_wait_asleep(int count, char** arguments) {
  const bool benchmark = count > 1 && std::strcmp(arguments[1], "bench") == 0;
  if (!benchmark || std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr)
    return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::execv("/proc/self/exe", arguments);  // where that fails the program goes on as it is
}

}  // namespace

int main(int count, char** arguments) {
  open_closed_streams();
  let_threads_wait_asleep(count, arguments);
  // A file size limit and a reader that left shall be errors of write(), with a sentence, not the end of the
  // process.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return sinkscope::run_program(sinkscope::normalise_options(count, arguments));
}
