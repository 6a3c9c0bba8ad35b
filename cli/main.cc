// The command `lowtide` as a program of its own.
#include "run.h"

int main(int count, char** words) {
  return lowtide::cli::run(count, words);
}
