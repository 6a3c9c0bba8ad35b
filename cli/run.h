#pragma once

namespace lowtide::cli {

// The whole command: takes the arguments of main() and returns the exit code. It never throws.
int run(int count, char** words);

}  // namespace lowtide::cli
