#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/commands.h"
#include "cli/option_table.h"

namespace {

// A standard stream that the caller closed would hand its number to the next file opened, and messages would
// end up in that file.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != stream) ::_exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  open_closed_streams();
  // A file size limit and a reader that left shall be errors of write(), with a sentence, not the end of the
  // process.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return sinkscope::run_program(sinkscope::normalise_options(count, arguments));
}
