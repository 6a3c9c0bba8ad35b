#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "lowtide/error.h"
#include "lowtide/tokens.h"
#include "support/loader_rig.h"
#include "support/token_files.h"

namespace lowtide {
namespace {

using Steps = std::vector<std::uint64_t>;

TEST(Loader, GivesEveryWindowOnceAnEpochOverAllRanks) {
  const LoaderRig rig;  // 100 windows
  for (const WindowOrder order : {WindowOrder::shuffle, WindowOrder::sequential}) {
    for (std::uint64_t world = 1; world <= 4; ++world) {
      std::map<std::uint64_t, std::multiset<std::uint64_t>> seen;  // by epoch
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        LoaderOptions options = kSmall;
        options.order = order;
        options.rank = rank;
        options.world_size = world;
        options.epochs = 3;
        Loader loader = rig.load(options);
        const std::uint64_t steps = 100 / (3 * world);
        EXPECT_EQ(loader.steps(), steps);
        for (std::uint64_t turn = 0; turn < 3 * steps; ++turn) {
          EXPECT_EQ(loader.steps_left(), steps - turn % steps);
          const auto batch = loader.next();
          ASSERT_TRUE(batch);
          EXPECT_EQ(batch->step(), turn % steps);
          EXPECT_EQ(batch->epoch(), turn / steps);
          EXPECT_EQ(batch->rows(), 3U);
          rig.expect_windows(*batch);
          seen[batch->epoch()].insert(batch->samples().begin(), batch->samples().end());
        }
        EXPECT_FALSE(loader.next());
        EXPECT_FALSE(loader.next()) << "and stays so";
        EXPECT_EQ(loader.steps_left(), 0U);
      }
      for (const auto& [epoch, samples] : seen) {
        EXPECT_EQ(samples.size(), 100 / (3 * world) * 3 * world);
        EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size()) << epoch;
      }
    }
  }
}

TEST(Loader, GivesTheLastBatchShortWhereNothingIsDropped) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.batch_size = 30;
  options.drop_last = false;
  options.epochs = 2;
  Loader loader = rig.load(options);
  EXPECT_EQ(loader.steps(), 4U);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::uint64_t> seen;
    for (const std::uint64_t rows : {30, 30, 30, 10}) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->rows(), rows);
      rig.expect_windows(*batch);
      seen.insert(batch->samples().begin(), batch->samples().end());
    }
    EXPECT_EQ(seen.size(), 100U);
  }
  EXPECT_FALSE(loader.next());
  loader.seek(4, 0);
  EXPECT_EQ(loader.epoch(), 1U) << "the end of an epoch is the start of the next";
  options.batch_size = 1000;
  EXPECT_EQ(rig.load(options).next()->rows(), 100U);
}

TEST(Loader, KeepsEveryWindowOnceWhileRanksChangeInTheEpoch) {
  const LoaderRig rig;
  std::multiset<std::uint64_t> seen;
  LoaderState state = rig.load(kSmall).state();
  struct Leg {
    std::uint64_t world, batch, steps;
  };
  std::uint64_t step = 0;
  for (const Leg& leg : {Leg{4, 2, 4}, Leg{2, 5, 3}, Leg{3, 1, 11}}) {
    LoaderState next;
    for (std::uint64_t rank = 0; rank < leg.world; ++rank) {
      LoaderOptions options = kSmall;
      options.batch_size = leg.batch;
      options.rank = rank;
      options.world_size = leg.world;
      Loader loader = rig.load(options);
      loader.restore(state);
      EXPECT_EQ(loader.steps_left(), (100 - state.position) / (leg.world * leg.batch));
      for (std::uint64_t i = 0; i < leg.steps; ++i) {
        const auto batch = loader.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->epoch(), 0U);
        EXPECT_EQ(batch->step(), step + i);
        rig.expect_windows(*batch);
        seen.insert(batch->samples().begin(), batch->samples().end());
      }
      next = loader.state();
      EXPECT_EQ(next.position, state.position + leg.steps * leg.world * leg.batch);
    }
    state = next;
    step += leg.steps;
  }
  EXPECT_EQ(seen.size(), 95U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 95U);
}

TEST(Loader, ResumesAtEveryStepWithTheSameBatches) {
  const LoaderRig rig;
  for (int kind = 0; kind < 4; ++kind) {
    LoaderOptions options = kSmall;
    options.batch_size = 9;
    std::vector<Heard> whole;
    Loader first = rig.any(kind, options);
    const std::uint64_t steps = first.steps();
    std::vector<LoaderState> states;
    for (std::uint64_t i = 0; i < 2 * steps + 3; ++i) {
      states.push_back(first.state());
      whole.push_back(hear(first));
    }
    for (std::size_t at = 0; at + 3 <= whole.size(); ++at) {
      Loader second = rig.any(kind, options);
      second.restore(states[at]);
      for (std::size_t i = at; i < at + 3; ++i) {
        ASSERT_EQ(hear(second), whole[i]) << "order " << kind << ", step " << i << " from " << at;
      }
    }
  }
}

TEST(Loader, DrawsEachSourceOfAMixtureByItsWeight) {
  const LoaderRig rig;  // 100 and 39 windows
  LoaderOptions options = kSmall;
  options.batch_size = 4;
  Loader loader = rig.mix(options);
  EXPECT_EQ(loader.steps(), 139U / 4);
  std::vector<std::uint64_t> ours, others;
  for (std::uint64_t n = 1; n <= 400;) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    for (const std::uint64_t sample : batch->samples()) {
      (sample < 100 ? ours : others).push_back(sample);
      EXPECT_LE(std::abs(static_cast<double>(ours.size()) - 0.7 * static_cast<double>(n)), 1.0);
      ++n;
    }
    EXPECT_EQ(batch->epoch(), (n - 2) / 4 / 34);
  }
  for (const auto& [samples, size] : {std::pair{ours, 100UL}, {others, 39UL}}) {
    for (std::size_t i = 0; i + size <= samples.size(); i += size) {
      const auto begin = samples.begin() + static_cast<long>(i);
      EXPECT_EQ(std::set(begin, begin + static_cast<long>(size)).size(), size) << "own epochs";
    }
  }
}

TEST(Loader, SkipsStepsAndKeepsThemInTheState) {
  const LoaderRig rig;
  for (int kind = 0; kind < 4; ++kind) {
    LoaderOptions options = kSmall;
    options.batch_size = 10;
    std::vector<Heard> whole;
    Loader plain = rig.any(kind, options);
    const std::uint64_t steps = plain.steps();
    for (std::uint64_t i = 0; i < 3 * steps; ++i) whole.push_back(hear(plain));

    Loader loader = rig.any(kind, options);
    EXPECT_EQ(hear(loader), whole[0]);
    loader.skip(2, 4);
    loader.skip(3, 6);  // overlaps
    loader.skip(0, steps, 1);
    loader.skip(1, 2, 2);
    EXPECT_EQ(loader.steps_left(), steps - 1 - 4);
    const LoaderState saved = loader.state();
    EXPECT_EQ(saved.skipped.size(), 3U);
    Loader restored = rig.any(kind, options);
    restored.restore(saved);
    for (Loader* one : {&loader, &restored}) {
      EXPECT_EQ(hear(*one), whole[1]);
      for (std::uint64_t step = 6; step < steps; ++step) EXPECT_EQ(hear(*one), whole[step]);
      EXPECT_EQ(one->epoch(), 2U);
      EXPECT_EQ(hear(*one), whole[2 * steps]);
      EXPECT_EQ(hear(*one), whole[2 * steps + 2]);
      EXPECT_EQ(one->state().skipped.size(), 3U) << "also what is behind";
      one->seek(1, 0);
      EXPECT_EQ(hear(*one), whole[1]);
      EXPECT_EQ(hear(*one), whole[6]) << "who goes back passes them again";
      one->seek(4, 0);
      EXPECT_EQ(one->step(), 6U);
    }
  }
}

TEST(Loader, LeavesOutWhatWasSkippedUnderAnotherWorldSizeToo) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = WindowOrder::sequential;
  Loader one = rig.load(options);
  for (int i = 0; i < 2; ++i) (void)one.next();
  one.skip(5, 12);  // windows 15 .. 35
  std::set<std::uint64_t> seen;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    options.world_size = 2;
    options.batch_size = 2;
    options.rank = rank;
    Loader two = rig.load(options);
    two.restore(one.state());
    std::uint64_t last = 0;
    while (two.epoch() == 0) {
      const auto batch = two.next();
      EXPECT_GE(batch->step(), last);
      last = batch->step();
      for (const std::uint64_t sample : batch->samples()) EXPECT_TRUE(seen.insert(sample).second);
    }
    // A further skip, where the first one does not start at a step of these sizes.
    two.restore(one.state());
    std::uint64_t name = 0;
    for (std::uint64_t i = 0; i < 5; ++i) name = two.next()->step() + 1;
    const LoaderState there = two.state();
    const Heard dropped = hear(two);
    const Heard kept = hear(two);
    two.restore(there);
    two.skip(name, name + 1);
    EXPECT_EQ(hear(two), kept);
    EXPECT_EQ(std::get<1>(dropped), name);
  }
  for (std::uint64_t sample = 6; sample < 97; ++sample) {
    EXPECT_EQ(seen.count(sample), sample < 15 || sample >= 36 ? 1U : 0U) << sample;
  }
}

TEST(Loader, SeeksToAnyStepOfAnyEpoch) {
  const LoaderRig rig;
  for (int kind = 0; kind < 4; ++kind) {
    LoaderOptions options = kSmall;
    options.batch_size = 10;
    options.epochs = 3;
    Loader plain = rig.any(kind, options);
    const std::uint64_t steps = plain.steps();
    std::vector<Heard> whole;
    for (std::uint64_t i = 0; i < 3 * steps; ++i) whole.push_back(hear(plain));
    Loader loader = rig.any(kind, options);
    for (const std::uint64_t at : Steps{3, 0, steps, 2 * steps + 1, steps - 1, 3 * steps - 1, 5}) {
      loader.seek(at % steps, at / steps);
      EXPECT_EQ(loader.step(), at % steps);
      EXPECT_EQ(loader.epoch(), at / steps);
      EXPECT_EQ(loader.steps_left(), steps - at % steps);
      EXPECT_EQ(hear(loader), whole[at]) << kind;
    }
    loader.seek(2);
    EXPECT_EQ(hear(loader), whole[2]) << "of the present epoch";
    loader.seek(0, 3);
    EXPECT_FALSE(loader.next());
    EXPECT_THROW(loader.seek(0, 4), std::out_of_range);
    EXPECT_THROW(loader.seek(steps + 1, 0), std::out_of_range);
    loader.seek(0, 0);
    EXPECT_EQ(hear(loader), whole[0]) << "also from behind the end";
  }
}

// Every token that batches of all ranks have as input, against when(); and what nobody has.
void expect_when(const LoaderRig& rig, int kind, LoaderOptions options, const LoaderState& state,
                 std::uint64_t epoch) {
  std::map<std::uint64_t, std::vector<Steps>> heard;  // by sample
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    Loader loader = rig.any(kind, options);
    loader.restore(state);
    while (loader.epoch() <= epoch) {
      const auto batch = loader.next();
      if (batch->epoch() != epoch) continue;
      for (std::uint64_t row = 0; row < batch->rows(); ++row) {
        heard[batch->samples()[row]].push_back({batch->step(), options.rank, row});
      }
    }
  }
  options.rank = 0;
  Loader asked = rig.any(kind, options);
  asked.restore(state);
  std::size_t found = 0;
  for (std::uint64_t sample = 0; sample < (kind == 3 ? 139U : 100U); ++sample) {
    const bool second = sample >= 100;
    const std::uint64_t window = second ? sample - 100 : sample;
    for (const std::uint64_t token : {window * 10, window * 10 + 9}) {
      const auto when = asked.when(token, epoch, second ? 1 : 0);
      const auto known = heard.find(sample);
      if (epoch > state.epoch || state.position == 0) {
        ASSERT_EQ(when.has_value(), known != heard.end()) << "sample " << sample;
      }
      if (known == heard.end()) continue;
      const Steps told{when->step, when->rank, when->row};
      // A mixture may have it twice: the first is told, and that may be behind the start.
      if (kind == 3 && state.position > 0 && epoch == state.epoch) continue;
      EXPECT_EQ(told, *std::min_element(known->second.begin(), known->second.end())) << sample;
      ++found;
    }
  }
  if (kind != 3 || epoch > state.epoch) {
    EXPECT_GT(found, 50U);
  }
}

TEST(Loader, AsksForNoDataToMove) {
  const LoaderRig rig;
  Loader loader = rig.load(kSmall);
  loader.seek(7, 2);
  loader.skip(9, 12);
  EXPECT_EQ(loader.stats().bytes_asked, 0U);
  (void)loader.state();  // whose fingerprint is made of what the files hold
  EXPECT_GT(loader.stats().bytes_asked, 0U);
}

TEST(Loader, TellsWhenATokenIsTrainedOn) {
  const LoaderRig rig;
  for (const int kind : {0, 2, 3}) {
    LoaderOptions options = kSmall;
    Loader loader = rig.any(kind, options);
    loader.skip(4, 7);
    loader.skip(2, 20, 1);
    const LoaderState start = loader.state();
    for (int i = 0; i < 9; ++i) (void)loader.next();
    const LoaderState later = loader.state();
    loader.seek(5, 1);
    for (const LoaderState& state : {start, later, loader.state()}) {
      for (const std::uint64_t world : {1, 3}) {
        options.world_size = world;
        for (std::uint64_t epoch = state.epoch; epoch < 4; ++epoch) {
          SCOPED_TRACE(testing::Message() << "order " << kind << ", epoch " << epoch << ", from "
                                          << state.epoch << "/" << state.position << ", " << world);
          expect_when(rig, kind, options, state, epoch);
        }
      }
    }
  }
}

TEST(Loader, TellsWhenATokenIsATargetOnlyAndRefusesWhatIsNotThere) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = WindowOrder::sequential;
  options.batch_size = 10;
  const Loader loader = rig.load(options);
  const auto last = loader.when(1000, 0);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 9U);
  EXPECT_EQ(last->row, 9U);
  EXPECT_FALSE(loader.when(1001, 0)) << "behind the last window";
  EXPECT_EQ(error_of([&] { (void)loader.when(1003, 0); }),
            "when: token 1003 is outside the 1003 of the stream");
  EXPECT_THROW((void)loader.when(1003, 0), std::out_of_range);
  EXPECT_THROW((void)loader.when(0, 0, 1), std::out_of_range);
  options.order = WindowOrder::random;
  EXPECT_THROW((void)rig.load(options).when(0, 0), std::invalid_argument);
}

TEST(Loader, DrawsRandomWindowsThatStartAnywhere) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = WindowOrder::random;
  Loader loader = rig.load(options);
  EXPECT_EQ(loader.steps(), 33U);
  std::set<std::uint64_t> starts;
  for (int i = 0; i < 60; ++i) {
    const auto batch = loader.next();
    for (std::uint64_t row = 0; row < 3; ++row) {
      const std::uint64_t start = batch->samples()[row];
      ASSERT_LT(start, 1003U - 10);
      starts.insert(start % 10);
      rig.expect_window(*batch, row, start);
    }
  }
  EXPECT_EQ(starts.size(), 10U);
  options.batch_size = 500;
  EXPECT_EQ(rig.load(options).steps(), 1U) << "at least one step, however few windows";
}

TEST(Loader, DeliversDocumentsApart) {
  const TempFolder folder;
  folder.write("t.bin", little_endian(std::vector<std::uint16_t>{1, 2, 9, 3, 9, 9, 4, 5, 6, 7, 8}));
  const Tokens tokens =
      Tokens::open(folder / "t.bin", {.dtype = "uint16", .eot = 9, .memory_bytes = 4 << 20});
  Loader loader(tokens, {.batch_size = 2,
                         .block_size = 5,
                         .order = WindowOrder::sequential,
                         .separate_documents = true});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(std::vector<std::int32_t>(batch->positions(), batch->positions() + 10),
            (std::vector<std::int32_t>{0, 1, 2, 0, 1, 0, 0, 1, 2, 3}));
  const auto cu = batch->cu_seqlens();
  EXPECT_EQ(std::vector<std::int32_t>(cu.begin(), cu.end()),
            (std::vector<std::int32_t>{0, 3, 5, 6, 10}));
  Loader across(tokens, {.batch_size = 2, .block_size = 5});
  const auto plain = across.next();
  EXPECT_EQ(plain->positions(), nullptr);
  EXPECT_TRUE(plain->cu_seqlens().empty());
}

}  // namespace
}  // namespace lowtide
