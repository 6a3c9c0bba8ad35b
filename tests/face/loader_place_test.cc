// Where a run is: saved, restored, moved, skipped over, and asked when a token comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lowtide/error.h"
#include "support/loader_rig.h"
#include "support/thrown.h"

namespace lowtide::loader_place_test {
namespace {

using Steps = std::vector<std::uint64_t>;

TEST(LoaderPlace, ResumesAtEveryStepWithTheSameBatches) {
  const LoaderRig rig;
  for (int kind = 0; kind < 4; ++kind) {
    LoaderOptions options = kSmall;
    options.batch_size = 9;
    std::vector<Heard> whole;
    Loader first = rig.any(kind, options);
    const std::uint64_t steps = first.steps();
    std::vector<State> states;
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

TEST(LoaderPlace, SkipsStepsAndKeepsThemInTheState) {
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
    const State saved = loader.state();
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

TEST(LoaderPlace, LeavesOutWhatWasSkippedUnderAnotherWorldSizeToo) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = OrderKind::sequential;
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
      EXPECT_GE(batch.step(), last);
      last = batch.step();
      for (const std::uint64_t sample : batch.index()) EXPECT_TRUE(seen.insert(sample).second);
    }
    // A further skip, where the first one does not start at a step of these sizes.
    two.restore(one.state());
    std::uint64_t name = 0;
    for (std::uint64_t i = 0; i < 5; ++i) name = two.next().step() + 1;
    const State there = two.state();
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

TEST(LoaderPlace, SeeksToAnyStepOfAnyEpoch) {
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

TEST(LoaderPlace, AsksForNoDataToMove) {
  const LoaderRig rig;
  Loader loader = rig.load(kSmall);
  loader.seek(7, 2);
  loader.skip(9, 12);
  EXPECT_EQ(loader.stats().bytes_asked, 0U);
  (void)loader.state();  // whose fingerprint is made of what the files hold
  EXPECT_GT(loader.stats().bytes_asked, 0U);
}

// Every token that batches of all ranks have as input, against when(); and what nobody has.
void expect_when(const LoaderRig& rig, int kind, LoaderOptions options, const State& state,
                 std::uint64_t epoch) {
  std::map<std::uint64_t, std::vector<Steps>> heard;  // by window; of source 1, from 100 on
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    Loader loader = rig.any(kind, options);
    loader.restore(state);
    while (loader.epoch() <= epoch) {
      const auto batch = loader.next();
      if (batch.epoch() != epoch) continue;
      for (std::uint64_t row = 0; row < batch.rows(); ++row) {
        const bool second = !batch.sources().empty() && batch.sources()[row] == 1;
        heard[batch.index()[row] + (second ? 100 : 0)].push_back({batch.step(), options.rank, row});
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

TEST(LoaderPlace, TellsWhenATokenIsTrainedOn) {
  const LoaderRig rig;
  for (const int kind : {0, 2, 3}) {
    LoaderOptions options = kSmall;
    Loader loader = rig.any(kind, options);
    loader.skip(4, 7);
    loader.skip(2, 20, 1);
    const State start = loader.state();
    for (int i = 0; i < 9; ++i) (void)loader.next();
    const State later = loader.state();
    loader.seek(5, 1);
    for (const State& state : {start, later, loader.state()}) {
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

TEST(LoaderPlace, RefusesAnEpochThatAMixtureNeverComesTo) {
  const LoaderRig rig;
  const Loader loader = rig.any(3, kSmall);
  for (const std::uint64_t epoch : {std::uint64_t{1} << 56, ~std::uint64_t{0}}) {
    EXPECT_THROW((void)loader.when(0, epoch), std::out_of_range) << epoch;
  }
}

TEST(LoaderPlace, TellsWhenATokenIsATargetOnlyAndRefusesWhatIsNotThere) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = OrderKind::sequential;
  options.batch_size = 10;
  const Loader loader = rig.load(options);
  const auto last = loader.when(1000, 0);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step, 9U);
  EXPECT_EQ(last->row, 9U);
  EXPECT_FALSE(loader.when(1001, 0)) << "behind the last window";
  EXPECT_EQ(thrown([&] { (void)loader.when(1003, 0); }),
            "when: token 1003 is outside the stream of 1003 tokens");
  EXPECT_THROW((void)loader.when(1003, 0), std::out_of_range);
  EXPECT_THROW((void)loader.when(0, 0, 1), std::out_of_range);
  options.order = OrderKind::random;
  EXPECT_THROW((void)rig.load(options).when(0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::loader_place_test
