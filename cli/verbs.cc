#include "verb.h"

namespace lowtide::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"info", "What a file is: format, type, shape, size, how much of it is cached",
     "lowtide info train.bin\nlowtide info --dtype float32 --shape 1000,162 m.f32", false,
     add_info},
    {"check", "Read all of a file and find what is wrong with it",
     "lowtide check --vocab 50257 train.bin\nlowtide check --nan m.npy", false, add_check},
    {"cache", "Which parts of a file are in the page cache; put it out or bring it in",
     "lowtide cache train.bin\nlowtide cache --evict train.bin", false, add_cache},
    {"guard", "Run a program under a limit on the pages of files that it maps",
     "lowtide guard --limit 512MiB -- python train.py", true, add_guard},
    {"completion", "Print a script that completes verbs and options in your shell",
     "lowtide completion bash >~/.local/share/bash-completion/completions/lowtide", false,
     add_completion},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

}  // namespace lowtide::cli
