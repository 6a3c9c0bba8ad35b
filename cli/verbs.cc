#include "verb.h"

namespace lowtide::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"info", "Describe a file: format, type, shape, size, and how much of it is cached",
     "lowtide info train.bin\nlowtide info --dtype float32 --shape 1000,162 m.f32", false,
     add_info},
    {"check", "Read a whole file and report what is wrong with it",
     "lowtide check --vocab 50257 train.bin val.bin\nlowtide check --nan m.npy", false, add_check},
    {"cache", "Show which parts of a file are in the page cache; evict the file or load it",
     "lowtide cache train.bin\nlowtide cache --evict train.bin", false, add_cache},
    {"profile", "Record where a program's memory goes over time, and explain it in words",
     "lowtide profile -o memory.html python train.py\nlowtide profile memory.trace -o memory.svg",
     true, add_profile},
    {"guard", "Run a program under a limit on its mapped file pages",
     "lowtide guard --limit 512MiB python train.py", true, add_guard},
    {"shuffle", "Write a file in shuffled order, within a memory budget",
     "lowtide shuffle --seed 1 --memory 1GiB m.npy shuffled.npy\n"
     "lowtide shuffle --unit document train.bin shuffled.bin\n"
     "lowtide shuffle --memory 1GiB --stage scatter --task 3/64 m.npy shuffled.npy",
     false, add_shuffle},
    {"convert", "Write a file in another format",
     "lowtide convert --format megatron train.ds train.bin\n"
     "lowtide convert --format npy --dtype float32 --shape 1000,162 m.f32 m.npy",
     false, add_convert},
    {"merge", "Write several files of one format into one",
     "lowtide merge a.bin b.bin -o all.bin\nlowtide merge 'part_*.npy' -o all.npy", false,
     add_merge},
    {"bench", "Measure how fast this file can be read here: cold and hot, engine by engine",
     "lowtide bench train.bin\nlowtide bench --dtype float32 --shape 3000000,162 m.f32", false,
     add_bench},
    {"doctor", "Report what this machine supports and what would make reads faster",
     "lowtide doctor\nlowtide doctor train.bin", false, add_doctor},
    {"demo", "Compare a memory map with Lowtide on a generated matrix: speed and memory",
     "lowtide demo\nlowtide demo --size 1GiB -o memory.html", false, add_demo},
    {"help", "Explain a verb: what it does, its options, and an example",
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
