#include "cli/commands.h"
#include "cli/option_table.h"

int main(int count, char** arguments) {
  return sinkscope::run_program(sinkscope::normalise_options(count, arguments));
}
