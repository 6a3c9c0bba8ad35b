// The place of Batches: saved and restored under other sizes, over copies and other data.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lowtide/array.h"
#include "os/temp_folder.h"
#include "support/thrown.h"
#include "support/token_stream.h"

namespace lowtide::batches_state_test {
namespace {

using Numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t kRows = 101;

struct BatchesState : testing::Test {
  [[nodiscard]] Array open(const std::string& name, const std::string& data) const {
    return Array::open(
        folder.write(name, data),
        {.dtype = "uint8", .shape = {{kRows, 4}}, .read = {.memory_bytes = 1 << 20}});
  }
  static Numbers rest(Batches& batches) {
    Numbers all;
    for (const Batch& batch : batches) {
      all.insert(all.end(), batch.index().begin(), batch.index().end());
    }
    return all;
  }

  TempFolder folder;
  std::string bytes = std::string(kRows * 4, 'a');
  Array array = open("m.u8", bytes);
};

TEST_F(BatchesState, ResumesUnderAnyBatchSize) {
  Batches first = array.batches({.batch_size = 7, .seed = 2, .epoch = 3});
  const Numbers whole = rest(first);
  first.seek(0);
  for (std::uint64_t step = 0; step <= first.steps(); ++step) {
    const State state = first.state();
    for (const std::uint64_t size : {1, 7, 10, 500}) {
      Batches second = array.batches({.batch_size = size, .seed = 2});
      second.restore(state);
      EXPECT_EQ(second.epoch(), 3U);
      const std::uint64_t done = std::min(step * 7, kRows);
      EXPECT_EQ(second.position(), (done + size - 1) / size);
      EXPECT_EQ(rest(second),
                Numbers(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()));
      EXPECT_EQ(second.state().position, kRows) << "the end, not the next epoch";
    }
    (void)first.next();
  }
}

TEST_F(BatchesState, IsThatOfItsDataAndOfNoOther) {
  const State state = array.batches({.seed = 2}).state();
  EXPECT_EQ(open("copy.u8", bytes).fingerprint(), array.fingerprint());
  for (const std::size_t at : {std::size_t{0}, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = 'b';
    const Array other = open("other.u8", changed);
    EXPECT_NE(other.fingerprint(), array.fingerprint());
    EXPECT_EQ(
        thrown([&] { other.batches({.seed = 2}).restore(state); }).find("state: the data differs"),
        0U);
  }
  EXPECT_EQ(thrown([&] { array.batches({.seed = 3}).restore(state); }),
            "state: seed differs: the state has 2, these batches have 3");
  State old = state;
  old.fingerprint.reset();
  EXPECT_EQ(thrown([&] { array.batches({.seed = 2}).restore(old); }), "no error");
}

TEST_F(BatchesState, CountsTheRowsThatWereListed) {
  const Numbers listed{5, 3, 3, 99};
  const std::vector<std::int32_t> same{5, 3, 3, 99}, other{5, 3, 4, 99};
  const State state = array.batches({.rows = listed}).state();
  EXPECT_EQ(state.order, "rows");
  EXPECT_EQ(array.batches({.rows = same}).state().fingerprint, state.fingerprint);
  EXPECT_NE(array.batches({.rows = other}).state().fingerprint, state.fingerprint);
}

}  // namespace
}  // namespace lowtide::batches_state_test
