#include "verb.h"

namespace lowtide::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"info", "What a file is: format, type, shape, size, how much of it is cached",
     "lowtide info train.bin\nlowtide info --dtype float32 --shape 1000,162 m.f32", false,
     add_info},
    {"check", "Read all of a file and find what is wrong with it",
     "lowtide check --vocab 50257 train.bin val.bin\nlowtide check --nan m.npy", false, add_check},
    {"cache", "Which parts of a file are in the page cache; put it out or bring it in",
     "lowtide cache train.bin\nlowtide cache --evict train.bin", false, add_cache},
    {"profile", "Where the memory of a program went, over time, with a verdict in words",
     "lowtide profile -o memory.html python train.py\nlowtide profile memory.trace -o memory.svg",
     true, add_profile},
    {"guard", "Run a program under a limit on the pages of files that it maps",
     "lowtide guard --limit 512MiB python train.py", true, add_guard},
    {"bench", "What a file gives on this disk: cold and hot, engine beside engine",
     "lowtide bench train.bin\nlowtide bench --dtype float32 --shape 3000000,162 m.f32", false,
     add_bench},
    {"doctor", "What this machine allows, what a path lies on, what would make it faster",
     "lowtide doctor\nlowtide doctor train.bin", false, add_doctor},
    {"demo", "Show on data of its own what a map does to memory, and what Lowtide does",
     "lowtide demo\nlowtide demo --size 1GiB -o memory.html", false, add_demo},
    {"help", "Explain a verb: what it does, its options, an example",
     "lowtide help\nlowtide help info", false, add_help},
    {"completion", "Print a script that completes verbs and options in your shell",
     "lowtide completion bash >~/.local/share/bash-completion/completions/lowtide", false,
     add_completion},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

}  // namespace lowtide::cli
