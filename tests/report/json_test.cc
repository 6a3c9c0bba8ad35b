// The report for other programs; tests/core/json_test.cc: the writer of it.
#include <gtest/gtest.h>

#include "lowtide/error.h"
#include "report/report.h"
#include "verdict/traces.h"

namespace lowtide::json_test {
namespace {

Trace small_trace() {
  Trace trace;
  trace.command = {"python", "a \xff"};
  trace.root_pid = 100;
  trace.started_unix_ms = 1790000000123;
  trace.machine = "Linux 6.18";
  for (int i = 0; i < 2; ++i) {
    Reading reading;
    reading.seconds = i + 0.5;
    reading.processes = {process_of(100, 4096.0 * (i + 1), 8192)};
    reading.processes[0].page_tables = Figure::unknown("no permission");
    trace.readings.push_back(reading);
  }
  trace.readings[1].files = {file_of("/a b", 4096, 8192, 12288), file_of("/c", 8192, 0, 8192)};
  trace.readings[1].files->at(1).cached = Figure::unknown("the kernel has no cachestat");
  trace.marks = {{0.75, "epoch \"1\""}};
  trace.ending = Ending{2, 137, 0.25};
  return trace;
}

TEST(JsonReport, HasAllThatWasSeen) {
  const std::string json = json_report(small_trace());
  for (const char* part : {
           R"({"format":1,"command":["python","a �"],"pid":100,"started_unix_ms":1790000000123,)",
           R"("machine":"Linux 6.18","seconds":2,"exit":137,"complete":true,)",
           R"("peak":{"rss":16384,"anon":8192,"file":8192,"shmem":0,"page_tables":null,)",
           R"("growth":{"rss":null,"anon":null,"file":null,"shmem":null,"page_tables":null,)",
           R"("verdict":{"kind":"too-short","headline":"Too short for a verdict: 2 readings )",
           R"("files":[{"path":"/c","deleted":false,"peak_mapped":8192,"peak_cached":null,)",
           R"({"path":"/a b","deleted":false,"peak_mapped":4096,"peak_cached":8192,)",
           R"("size":12288,"mapped_now":4096,)",
           R"("looks":{"seconds":[1.5],"mapped":[4096],"cached":[8192]}}])",
           R"("group":null,"cost_cpu_seconds":0.25,)",
           R"("marks":[{"seconds":0.75,"text":"epoch \"1\""}],)",
           R"("readings":{"seconds":[0.5,1.5],"processes":[1,1],"rss":[12288,16384],)",
           R"("page_tables":[null,null],"swap":[0,0],"pss":[null,null],)",
           R"("page_cache":[null,8192],"group_usage":[null,null]},)",
       }) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

TEST(JsonReport, OfAnUnfinishedTraceSaysSo) {
  Trace trace = small_trace();
  trace.ending.reset();
  const std::string json = json_report(trace);
  EXPECT_NE(json.find(R"("seconds":1.5,"exit":null,"complete":false,)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("cost_cpu_seconds":null)"), std::string::npos);
  EXPECT_EQ(json_report(Trace{}).substr(0, 25), R"({"format":1,"command":[],)");
}

TEST(JsonReport, HasTheLastOfTheGroup) {
  Trace trace = small_trace();
  GroupReading group;
  group.path = "/sys/fs/cgroup/x";
  group.version = 2;
  group.usage = Figure::known(7);
  group.limit = Figure::unknown("no limit");
  trace.readings[0].group = group;
  const std::string json = json_report(trace);
  EXPECT_NE(json.find(R"("group":{"path":"/sys/fs/cgroup/x","version":2,"usage":7,)"),
            std::string::npos);
  EXPECT_NE(json.find(R"("limit":null,)"), std::string::npos);
  EXPECT_NE(json.find(R"("group_usage":7})"), std::string::npos);
}

TEST(JsonReport, ComesBackAsItWas) {
  Trace trace = small_trace();
  trace.readings[0].processes[0].name = "a \"b\" \\ \n\xff";
  EXPECT_EQ(parse_json(json_report(trace), "r.json"), trace);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Trace run = fork_server_trace(seed);
    EXPECT_EQ(parse_json(json_report(run), "r.json"), run);
  }
}

TEST(JsonReport, ComesBackWithNamesThatItEscapes) {
  Trace trace = small_trace();
  trace.readings[1].files->at(0).path = "/a\u202egpj\u009b\U000e0041";
  EXPECT_EQ(json_report(trace).find("\u202e"), std::string::npos);
  EXPECT_EQ(parse_json(json_report(trace), "r.json"), trace);
}

TEST(JsonReport, ComesBackFromAnyLayout) {
  const Trace trace = parse_json(
      "{ \"a\" : [1, {\"trace\": \"}\"}, \"]\"],\n \"b\": -1.5e3, \"c\":{}, \"d\": null,\n"
      " \"trace\" : \"lowtide-trace 1 7 5 \\u0022m\\\"\\n\" }",
      "r.json");
  EXPECT_EQ(trace.root_pid, 7);
  EXPECT_EQ(trace.machine, "m");
}

TEST(JsonReport, OfOthersIsRefused) {
  const std::string whole = json_report(small_trace());
  for (const std::string& text :
       {std::string("{}"), std::string("{\"trace\": 3}"), std::string("{"),
        std::string("{\"a\": [1, 2"), std::string("{\"trace\": \"x\"}"), whole.substr(0, 300),
        std::string("{\"a\" 1}"), std::string("{\"a\\"), std::string("{\"a\\u12")}) {
    EXPECT_THROW((void)parse_json(text, "r.json"), FormatError) << text;
  }
}

TEST(JsonReport, TellsEachProcess) {
  Program run(3);
  run.count = 200;
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 50 * kMiB));
    if (part < 0.9) reading.processes.push_back(process_of(117, (100 + 400 * part) * kMiB));
  });
  const std::string json = json_report(trace);
  EXPECT_NE(json.find(R"("processes":[{"pid":117,"parent":100,"name":"python","began":)"),
            std::string::npos);
  EXPECT_NE(json.find(R"("leaks":true},{"pid":100,"parent":1,)"), std::string::npos);
}

}  // namespace
}  // namespace lowtide::json_test
