// The command as a function of the Python module; launcher.cc calls it.
#include "run.h"

// Its name contains the version, so that a launcher never runs the command of another one.
extern "C" [[gnu::visibility("default")]] int LOWTIDE_ENTRY(int count, char** words) {
  return lowtide::cli::run(count, words);
}
