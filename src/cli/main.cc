#include <csignal>

#include "cli/commands.h"
#include "cli/option_table.h"

int main(int count, char** arguments) {
  // A file size limit shall be an error of write(), with a sentence, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return sinkscope::run_program(sinkscope::normalise_options(count, arguments));
}
