// What judge() says of whole programs; tests/meter/alarm_test.cc: how often it is wrong.
#include "verdict/verdict.h"

#include <gtest/gtest.h>

#include "verdict/courses.h"
#include "verdict/summary.h"
#include "verdict/traces.h"

namespace lowtide::verdict_test {
namespace {

std::string all_of(const Verdict& verdict) {
  std::string text = verdict.headline + "\n";
  for (const auto* part : {&verdict.evidence, &verdict.unknown, &verdict.advice}) {
    for (const std::string& sentence : *part) text += sentence + "\n";
  }
  return text;
}

bool says(const Verdict& verdict, const std::string& words) {
  return all_of(verdict).find(words) != std::string::npos;
}

// An np.memmap that is read from start to end, for `part` of the file.
Trace memmap_scan(std::uint64_t seed, double size_mib, const std::string& path) {
  Program run(seed);
  int count = 0;
  return run.make([&, size_mib](double part, Reading& reading) {
    const double mapped = size_mib * kMiB * part;
    reading.processes.push_back(
        process_of(100, 80 * kMiB, 30 * kMiB + mapped, kMiB + mapped / 512));
    if (count++ % 20 == 0) {
      reading.files = {file_of("/usr/lib/libc.so.6", 2 * kMiB, 2 * kMiB, 2 * kMiB),
                       file_of(path, mapped, mapped, size_mib * kMiB)};
    }
  });
}

TEST(Verdict, CallsAHeapThatGrowsSteadilyALeak) {
  Program run(1);
  run.seconds = 60;
  const Trace trace = run.heap(1, [](double part) { return 100 + 600 * part; });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(verdict.headline.starts_with("The heap grows by 10.0 +- 0.")) << verdict.headline;
  EXPECT_TRUE(says(verdict, "memray"));
}

TEST(Verdict, NamesTheMappedFileAndWhatToDo) {
  const Verdict verdict = judge(memmap_scan(2, 4096, "/data/train set.bin"));
  EXPECT_EQ(verdict.kind, VerdictKind::mapped_files) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "/data/train set.bin, which grew by ")) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "lt.open"));
  EXPECT_FALSE(says(verdict, "looks like a leak"));
}

TEST(Verdict, TellsDataFromProgramsAndLibraries) {
  for (const char* path : {"/data/bin/train.bin", "/data/bin/train/part0", "/data/x.solar"}) {
    const Verdict verdict = judge(memmap_scan(2, 4096, path));
    EXPECT_EQ(verdict.kind, VerdictKind::mapped_files) << all_of(verdict);
    EXPECT_TRUE(says(verdict, std::string("most of it is ") + path)) << all_of(verdict);
  }
  for (const char* path :
       {"/usr/bin/python3.12", "/opt/env/bin/node", "/lib/libc.so.6", "/venv/_core.abi3.so",
        "/usr/lib/locale/locale-archive", "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
        "/usr/share/zoneinfo/Europe/Paris", "/etc/ld.so.cache"}) {
    EXPECT_TRUE(is_library(path)) << path;
  }
}

TEST(Verdict, DoesNotTakeAProgramThatRanForData) {
  EXPECT_TRUE(says(judge(memmap_scan(2, 4096, "/usr/lib/gcc/cc1plus")), "cc1plus"));
  Trace trace = memmap_scan(2, 4096, "/usr/lib/gcc/cc1plus");
  for (Reading& reading : trace.readings) reading.processes[0].name = "cc1plus";
  EXPECT_FALSE(says(judge(trace), "/usr/lib/gcc/cc1plus")) << all_of(judge(trace));
}

TEST(Verdict, DoesNotSayMostOfAFileThatWasLookedAtTooEarly) {
  EXPECT_TRUE(says(judge(memmap_scan(2, 4096, "/data/x.bin")), "most of it is /data/x.bin"));
  Trace trace = memmap_scan(2, 4096, "/data/x.bin");
  for (Reading& reading : trace.readings) {
    if (reading.seconds > trace.readings.back().seconds / 4) reading.files.reset();
  }
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::mapped_files) << all_of(verdict);
  EXPECT_FALSE(says(verdict, "most of it")) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "check /data/x.bin")) << all_of(verdict);
}

TEST(Verdict, TellsThePeakOfAFlatHeapThatEndsLow) {
  Program run(9);
  const Trace trace = run.heap(0, [](double part) { return part > 0.97 ? 16 : 44; });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::flat) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "never grew above 44")) << all_of(verdict);
}

TEST(Verdict, ShowsAFileNameThatIsNoTextAsText) {
  const Verdict verdict = judge(memmap_scan(2, 4096, "/data/\xff\nx.bin"));
  EXPECT_TRUE(says(verdict, "'/data/\\xff\\nx.bin'")) << all_of(verdict);
}

TEST(Verdict, NeverCallsThePageCacheALeak) {
  for (const bool by_group : {false, true}) {
    Program run(3);
    const Trace trace = run.make([&](double part, Reading& reading) {
      reading.processes.push_back(process_of(100, 80 * kMiB));
      const double cached = 3000 * kMiB * part;
      if (by_group) {
        GroupReading group;
        group.inactive_file = figure_of(cached);
        group.active_file = figure_of(kMiB);
        group.usage = figure_of(cached + 100 * kMiB);
        reading.group = group;
      } else {
        reading.files = {file_of("/data/x.bin", 0, cached, 3000 * kMiB)};
      }
    });
    const Verdict verdict = judge(trace);
    EXPECT_EQ(verdict.kind, VerdictKind::page_cache) << all_of(verdict);
    EXPECT_TRUE(says(verdict, "No leak: only the page cache grew"));
  }
}

TEST(Verdict, SeesPageTables) {
  Program run(4);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 80 * kMiB, 40 * kMiB, 300 * kMiB * part));
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::page_tables) << all_of(verdict);
}

TEST(Verdict, SeesSharedPagesThatAreCountedTwice) {
  Program run(5);
  const Trace trace = run.make([&](double part, Reading& reading) {
    const int workers = 8;
    for (int i = 0; i < workers; ++i) {
      reading.processes.push_back(process_of(100 + i, 20 * kMiB, 1000 * kMiB * part));
      reading.processes.back().pss = figure_of((20 + 1000 * part / workers) * kMiB);
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::shared_twice) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "held (PSS)"));
}

// A fork server that keeps more and more children: each counts the heap of the parent again.
TEST(Verdict, DoesNotTakeForkedChildrenForALeak) {
  Program run(6);
  const Trace trace = run.make([&](double part, Reading& reading) {
    const int children = static_cast<int>(part * 60);
    for (int i = 0; i <= children; ++i) {
      reading.processes.push_back(process_of(100 + i, 500 * kMiB));
      reading.processes.back().pss = figure_of(530 * kMiB / (children + 1));
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::shared_twice) << all_of(verdict);
}

TEST(Verdict, SeesALeakInOneChild) {
  Program run(7);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 500 * kMiB));
    reading.processes.push_back(process_of(117, (50 + 400 * part) * kMiB));
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "python (pid 117)")) << all_of(verdict);
}

// DataLoader workers end a moment before their parent: the tree shrinks at its end.
TEST(Verdict, NamesAWorkerThatLeaksAndEndsBeforeItsParent) {
  Program run(7);
  run.seconds = 48;
  run.count = 400;
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    for (int worker = 0; worker < 3 && part > 0.05 && part < 0.965; ++worker) {
      const double kept = worker == 1 ? 305 * part : 0;
      reading.processes.push_back(process_of(201 + worker, (150 + kept) * kMiB));
      reading.processes.back().name = "pt_data_worker";
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(verdict.headline.starts_with("The heap of pt_data_worker (pid 202) grows by 6.3"))
      << all_of(verdict);
  EXPECT_TRUE(says(verdict, "--follow-fork")) << all_of(verdict);
  EXPECT_FALSE(says(verdict, "pid 201")) << all_of(verdict);
  EXPECT_GT(growth_of(trace).anon.value(), 250 * static_cast<std::int64_t>(kMiB));
}

TEST(Verdict, CountsTheProcessesThatLeak) {
  Program run(8);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    for (int worker = 1; worker <= 6; ++worker) {
      reading.processes.push_back(process_of(100 + worker, (100 + 100 * worker * part) * kMiB));
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(verdict.headline.starts_with("The heaps of 6 processes grow")) << verdict.headline;
  EXPECT_TRUE(says(verdict, "fastest in python (pid 106) by ")) << verdict.headline;
  EXPECT_TRUE(says(verdict, "and 2 more leaking processes")) << all_of(verdict);
}

// Each epoch has workers of its own, which fill up and end.
TEST(Verdict, DoesNotTakeWorkersThatAreRestartedForALeak) {
  for (const double epochs : {4, 10, 40}) {
    Program run(9);
    run.count = 600;
    const Trace trace = run.make([&](double part, Reading& reading) {
      const double epoch = std::floor(part * epochs), within = part * epochs - epoch;
      reading.processes.push_back(process_of(100, 300 * kMiB));
      for (int worker = 0; worker < 2 && within < 0.95; ++worker) {
        const int pid = 200 + 2 * static_cast<int>(epoch) + worker;
        reading.processes.push_back(process_of(pid, (50 + 200 * within) * kMiB));
      }
    });
    const Verdict verdict = judge(trace);
    EXPECT_EQ(verdict.kind, VerdictKind::flat) << epochs << "\n" << all_of(verdict);
  }
}

TEST(Verdict, DoesNotTakeAChildThatLoadsForAMomentForALeak) {
  Program run(10);
  run.count = 600;
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    if (part > 0.4 && part < 0.6) {
      reading.processes.push_back(process_of(101, (part - 0.4) * 5000 * kMiB));
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::flat) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "python (pid 101)")) << all_of(verdict);  // told, not blamed
}

TEST(Verdict, SaysThatThereAreMoreAndMoreProcesses) {
  Program run(11);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    const int children = 2 + static_cast<int>(part * 60);
    for (int i = 0; i < children; ++i) {
      reading.processes.push_back(process_of(101 + i, 40 * kMiB));
    }
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "because their number grows: ")) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "without ending them or waiting")) << all_of(verdict);
}

TEST(Verdict, NamesNoFileThatHardlyGrew) {
  Program run(12);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    reading.files = {file_of("/usr/lib/gconv/gconv-modules.cache", 28 * 1024 * part, 0, 28 * 1024),
                     file_of("/data/x.bin", 9 * kMiB * part, 9 * kMiB, 9 * kMiB)};
  });
  const Verdict verdict = judge(trace);
  EXPECT_FALSE(says(verdict, "gconv")) << all_of(verdict);
  EXPECT_FALSE(says(verdict, "x.bin")) << all_of(verdict);  // 3 % of what is resident
}

TEST(Verdict, SeesALeakThatIsSwappedOut) {
  Program run(8);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 500 * kMiB));
    reading.processes.back().swap = figure_of(900 * kMiB * part);
  });
  EXPECT_EQ(judge(trace).kind, VerdictKind::heap_leak);
}

TEST(Verdict, SeesSharedMemoryThatGrows) {
  Program run(9);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 500 * kMiB));
    reading.processes.back().shmem = figure_of(900 * kMiB * part);
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(verdict.headline.starts_with("Shared memory grows by ")) << verdict.headline;
}

TEST(Verdict, DoesNotJudgeThreeReadings) {
  Program run(10);
  run.count = 3;
  const Verdict verdict = judge(run.heap(0, [](double part) { return 100 + 900 * part; }));
  EXPECT_EQ(verdict.kind, VerdictKind::too_short);
  EXPECT_TRUE(says(verdict, "3 readings")) << all_of(verdict);
  EXPECT_EQ(judge(Trace{}).kind, VerdictKind::too_short);
}

TEST(Verdict, TellsWhatItCouldNotSee) {
  Program run(11);
  const Trace trace = run.make([&](double, Reading& reading) {
    ProcessReading process;
    process.pid = 12;
    process.name = "sudo";
    process.anon = process.file = process.shmem = process.page_tables = process.pss =
        Figure::unknown("no permission");
    reading.processes.push_back(process);
  });
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::too_short);
  EXPECT_TRUE(says(verdict, "No verdict")) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "heap of sudo (pid 12): no permission")) << all_of(verdict);
  EXPECT_TRUE(says(verdict, "list of mapped files: never read"));
}

TEST(Verdict, DoesNotListWhatWasOnlyNotAskedNow) {
  const Verdict verdict = judge(flat_trace(12));
  EXPECT_FALSE(says(verdict, "not asked now")) << all_of(verdict);
  EXPECT_EQ(verdict.kind, VerdictKind::flat);
}

TEST(Verdict, HasAWordForEachKind) {
  EXPECT_STREQ(verdict_word(VerdictKind::heap_leak), "heap-leak");
  EXPECT_STREQ(verdict_word(VerdictKind::too_short), "too-short");
}

TEST(Verdict, SurvivesAnyNumbers) {
  Program run(13);
  const Trace trace = run.make([&](double, Reading& reading) {
    for (int i = 0; i < 3; ++i) {
      ProcessReading process = process_of(100 + i, 0);
      for (Figure* figure : {&process.anon, &process.file, &process.shmem, &process.page_tables,
                             &process.swap, &process.pss}) {
        *figure = Figure::known(run.chance.between(0, 1) < 0.5 ? 0 : UINT64_MAX);
      }
      reading.processes.push_back(process);
    }
    reading.files = {file_of("/x", 1e19, 1e19, 0), file_of("/y", 1e19, 0, 0)};
  });
  EXPECT_FALSE(judge(trace).headline.empty());
}

}  // namespace
}  // namespace lowtide::verdict_test
