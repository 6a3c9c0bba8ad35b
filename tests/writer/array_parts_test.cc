// Several processes write the rows of one array.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/writer.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/thrown.h"
#include "writer/faulty_calls.h"
#include "writer/part_ticket.h"
#include "writer/written_array.h"

namespace lowtide::array_parts_test {
namespace {

using Names = std::set<std::string>;

CreateOptions rows_of(std::uint64_t rows, std::uint64_t row_bytes) {
  return {.dtype = "uint8",
          .rows = rows,
          .row_shape = std::vector<std::uint64_t>{row_bytes},
          .memory_bytes = 1 << 20};
}

void write_part(const std::string& part, std::uint64_t first, const std::string& text) {
  ArrayWriter writer = ArrayWriter::open_part(part);
  writer.write(first, text.size() / 3, bytes_of(text));
  writer.close();
}

// Row by row in an order of its own, so that every page is changed many times by both neighbours.
int write_rows_in_child(const std::string& part, std::uint64_t first, std::uint64_t end,
                        const std::string& all, std::uint64_t row_bytes) {
  ArrayWriter writer = ArrayWriter::open_part(part);
  const std::uint64_t count = end - first;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = first + (i * 7919) % count;
    writer.write(row, 1, bytes_of(all).subspan(row * row_bytes, row_bytes));
  }
  writer.close();
  return 0;
}

TEST(ArrayParts, OfManyProcessesLoseNoByteOfASharedPage) {
  for (const std::uint64_t row_bytes : {1, 3, 648, 4095, 5000}) {
    SCOPED_TRACE(row_bytes);
    const TempFolder folder;
    const std::string path = folder / "a.npy";
    // Far more parts than pages for short rows: many processes share one page.
    const std::uint64_t rows = row_bytes < 100 ? 8'009 : 211;
    const std::uint64_t children = 8;
    const std::string all = pattern(rows * row_bytes);
    ArrayWriter writer = ArrayWriter::create(path, rows_of(rows, row_bytes));
    std::vector<pid_t> running;
    for (std::uint64_t child = 0; child < children; ++child) {
      const std::uint64_t first = rows * child / (children + 1);
      const std::uint64_t end = rows * (child + 1) / (children + 1);
      const std::string part = writer.part(first, end);
      running.push_back(
          start_child([&] { return write_rows_in_child(part, first, end, all, row_bytes); }));
    }
    // The rest is the writer's own.
    const std::uint64_t first = rows * children / (children + 1);
    writer.write(first, rows - first, bytes_of(all).subspan(first * row_bytes));
    for (const pid_t child : running) expect_success(child);
    writer.close();
    EXPECT_EQ(written(path), shape_text(std::vector{rows, row_bytes}) + " " + all);
    EXPECT_EQ(std::filesystem::file_size(path), 128 + all.size());
    EXPECT_EQ(names_in(folder.path()), Names{"a.npy"});
  }
}

TEST(ArrayParts, AreClosedBeforeTheArrayIsPublished) {
  const TempFolder folder;
  const std::string path = folder.write("a.npy", "old");
  ArrayWriter writer = ArrayWriter::create(path, triples(4));
  const std::string first = writer.part(0, 1);
  const std::string second = writer.part(2, 4);
  writer.write(1, 1, bytes_of("bbb"));
  EXPECT_EQ(thrown<std::invalid_argument>([&] { writer.close(); }),
            path +
                ": 2 of 2 parts are not closed (rows 0:1: never opened; rows 2:4: never opened)"
                "; write them again and close, or abandon the array");
  EXPECT_FALSE(writer.closed());
  write_part(first, 0, "aaa");
  std::optional<ArrayWriter> open = ArrayWriter::open_part(second);
  open->append(1, bytes_of("ccc"));
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              writer.close();
            }).find("1 of 2 parts are not closed (rows 2:4: still open)"),
            std::string::npos);
  EXPECT_EQ(caught<IoError>([&] { (void)ArrayWriter::open_part(second); })->err, EBUSY);
  open.reset();  // lost without close
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              writer.close();
            }).find("rows 2:4: abandoned after an error"),
            std::string::npos);
  EXPECT_EQ(file_text(path), "old");
  write_part(second, 2, "cccddd");
  write_part(first, 0, "AAA");  // once more: a task that was repeated
  writer.close();
  EXPECT_EQ(written(path), "(4, 3) AAAbbbcccddd");
}

TEST(ArrayParts, OfAKilledProcessAreReportedAndWrittenAgain) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  ArrayWriter writer = ArrayWriter::create(path, triples(2));
  const std::string part = writer.part(0, 2);
  const pid_t child = start_child([&] {
    ArrayWriter mine = ArrayWriter::open_part(part);
    mine.write(0, 1, bytes_of("xxx"));
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              writer.close();
            }).find("rows 0:2: its process ended without close"),
            std::string::npos);
  write_part(part, 0, "aaabbb");
  writer.close();
  EXPECT_EQ(written(path), "(2, 3) aaabbb");
}

TEST(ArrayParts, KeepToTheirRows) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  ArrayWriter writer = ArrayWriter::create(path, triples(10));
  writer.write(0, 10, bytes_of(std::string(30, '-')));  // before there were parts
  const std::string part = writer.part(2, 5);
  ArrayWriter mine = ArrayWriter::open_part(part);
  EXPECT_EQ(mine.shape(), writer.shape());
  mine.write(2, 3, bytes_of("aaabbbccc"));
  EXPECT_EQ(thrown<std::out_of_range>([&] { mine.write(4, 2, bytes_of("xxxyyy")); }),
            "row 5 is outside this part, which has rows 2:5");
  const std::vector<std::int64_t> rows{3, 1};
  EXPECT_THROW(mine.write_rows(std::span(rows), bytes_of("xxxyyy")), std::out_of_range);
  EXPECT_THROW(mine.append(1, bytes_of("xxx")), std::out_of_range);
  EXPECT_NE(thrown<std::invalid_argument>([&] { mine.commit(); }).find("commit is not possible"),
            std::string::npos);
  EXPECT_NE(thrown<std::invalid_argument>([&] { (void)mine.part(2, 3); }).find("a part itself"),
            std::string::npos);
  EXPECT_EQ(thrown<std::invalid_argument>([&] { writer.write(1, 2, bytes_of("xxxyyy")); }),
            path + ": rows 2:5 belong to a part; write them through it");
  EXPECT_THROW(writer.write_rows(std::span(rows), bytes_of("xxxyyy")), std::invalid_argument);
  EXPECT_THROW(writer.commit(), std::invalid_argument);
  for (const auto& [first, end] : {std::pair{4, 6}, {0, 3}, {3, 4}, {0, 10}})
    EXPECT_THROW((void)writer.part(first, end), std::invalid_argument) << first;
  for (const auto& [first, end] : {std::pair{5, 5}, {6, 11}, {7, 6}})
    EXPECT_THROW((void)writer.part(first, end), std::out_of_range) << first;
  mine.close();
  writer.write(5, 1, bytes_of("fff"));
  writer.close();
  EXPECT_EQ(written(path), "(10, 3) ------aaabbbcccfff------------");
}

TEST(ArrayParts, NeedAShapeAndANewFileInCOrder) {
  const TempFolder folder;
  const auto refusal = [&](const CreateOptions& options) {
    ArrayWriter writer = ArrayWriter::create(folder / "a.npy", options);
    if (!options.rows && writer.has_row_shape()) append_text(writer, "abc");
    return thrown<std::invalid_argument>([&] { (void)writer.part(0, 1); });
  };
  EXPECT_NE(refusal(triples()).find("shape of the array must be known"), std::string::npos);
  CreateOptions fortran = triples(4);
  fortran.fortran_order = true;
  EXPECT_NE(refusal(fortran).find("order F"), std::string::npos);
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(4));
  writer.write(0, 1, bytes_of("abc"));
  writer.commit();
  EXPECT_NE(thrown<std::invalid_argument>([&] { (void)writer.part(1, 2); }).find("committed"),
            std::string::npos);
}

TEST(ArrayParts, OfAnArrayThatIsGoneAreRefused) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  std::string part;
  {
    ArrayWriter writer = ArrayWriter::create(path, triples(2));
    part = writer.part(0, 1);
    const std::string other = writer.part(1, 2);
    ArrayWriter mine = ArrayWriter::open_part(other);
    writer.abandon();
    mine.append(1, bytes_of("abc"));
    EXPECT_EQ(caught<IoError>([&] { mine.close(); })->err, ESTALE);
  }
  EXPECT_EQ(caught<IoError>([&] { (void)ArrayWriter::open_part(part); })->err, ESTALE);
  ArrayWriter another = ArrayWriter::create(path, triples(2));
  EXPECT_EQ(caught<IoError>([&] { (void)ArrayWriter::open_part(part); })->err, ESTALE);
  (void)another.part(0, 1);  // has a mark of its own
  EXPECT_EQ(caught<IoError>([&] { (void)ArrayWriter::open_part(part); })->err, ESTALE);
}

TEST(ArrayParts, WorkWithoutLocks) {
  const TempFolder folder;
  const sys::Fault locks(
      sys::table.lock_byte, +[](int, off_t, int) {
        errno = EAGAIN;  // as if the lock on the file were one on every byte
        return -1;
      });
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(2));
  const std::string part = writer.part(0, 2);
  {
    const ArrayWriter lost = ArrayWriter::open_part(part);
    EXPECT_NE(thrown<std::invalid_argument>([&] { writer.close(); }).find("rows 0:2: not closed"),
              std::string::npos);
  }
  write_part(part, 0, "aaabbb");
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(2, 3) aaabbb");
}

TEST(ArrayParts, AreNotDoneAfterTroubleAtAnyCall) {
  const QuickSyncs syncs;
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  const std::string text = pattern(30'000);
  std::optional<ArrayWriter> writer;
  std::string part;
  std::size_t calls = 0;
  for (const Trouble trouble :
       {Trouble::kill, Trouble::no_space, Trouble::io_error, Trouble::interrupt}) {
    for (int at = 0; at == 0 || at < static_cast<int>(calls); ++at) {
      SCOPED_TRACE(std::to_string(static_cast<int>(trouble)) + " at " + std::to_string(at));
      writer.emplace(ArrayWriter::create(path, triples(10'000)));
      part = writer->part(0, 10'000);
      if (calls == 0) {
        const FaultyCalls counted;
        write_part(part, 0, text);
        calls = FaultyCalls::log().size();
      }
      const int status = in_trouble(trouble, at, [&] { write_part(part, 0, text); });
      EXPECT_TRUE(status == 0 || trouble != Trouble::interrupt);
      try {  // the part was done before the trouble came, or the array is not published
        writer->close();
      } catch (const std::invalid_argument&) {
        EXPECT_NE(status, 0);
        write_part(part, 0, text);
        writer->close();
      }
      EXPECT_EQ(written(path), "(10000, 3) " + text);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(calls, 10u);
}

TEST(PartTicket, IsTextThatReadsBack) {
  const PartTicket ticket{.mark = ~0ULL,
                          .first_row = 3,
                          .end_row = 9,
                          .record_bytes = 4096,
                          .memory_bytes = 1 << 20,
                          .locks = true,
                          .descr = "[('x y', '<f4')]",
                          .shape = {10, 2, 0},
                          .path = "/a folder/x\n.npy"};
  const std::string text = ticket.text();
  const PartTicket found = PartTicket::parse(text);
  EXPECT_EQ(found.text(), text);
  EXPECT_EQ(found.descr, ticket.descr);
  EXPECT_EQ(found.path, ticket.path);
  EXPECT_EQ(found.shape, ticket.shape);
  const std::size_t path = text.size() - ticket.path.size();
  for (std::size_t size = 0; size <= path; ++size)
    EXPECT_THROW((void)PartTicket::parse(text.substr(0, size)), std::invalid_argument) << size;
  EXPECT_THROW((void)PartTicket::parse("lowtide-part-2" + text.substr(14)), std::invalid_argument);
  EXPECT_THROW((void)PartTicket::parse("lowtide-part-1 1 9 3 0 0 0 1 10 3 <f4 /a"),
               std::invalid_argument);
  EXPECT_THROW((void)PartTicket::parse("lowtide-part-1 1 3 9 0 0 0 1 10 -3 <f4 /a"),
               std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::array_parts_test
