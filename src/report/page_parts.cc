#include "lowtide/bytes.h"
#include "lowtide/command/terminal.h"
#include "meter/sums.h"
#include "report/markup.h"
#include "report/page.h"

namespace lowtide {
namespace {

std::string fact(const char* name, const std::string& value) {
  return value.empty()
             ? ""
             : std::string("<div><dt>") + name + "</dt><dd>" + escaped(value) + "</dd></div>\n";
}

std::string ended(const Trace& trace) {
  if (!trace.ending) return "unknown: the trace stops here";
  if (!trace.ending->exit_code) return "";
  const int code = *trace.ending->exit_code;
  if (code > 128) return "killed by signal " + std::to_string(code - 128);
  return "exit code " + std::to_string(code);
}

std::string list(const std::vector<std::string>& items) {
  std::string out = "<ul>\n";
  for (const std::string& item : items) out += "<li>" + escaped(item) + "</li>\n";
  return out + "</ul>\n";
}

const char* title_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::flat:
      return "Flat";
    case VerdictKind::heap_leak:
      return "Heap leak";
    case VerdictKind::mapped_files:
      return "Pages of mapped files";
    case VerdictKind::page_cache:
      return "Page cache only";
    case VerdictKind::page_tables:
      return "Page tables";
    case VerdictKind::shared_twice:
      return "Shared pages, counted more than once";
    case VerdictKind::too_short:
      break;
  }
  return "Too short to say";
}

}  // namespace

std::string page_head(const Trace& trace) {
  constexpr std::size_t kMostLetters = 1000;
  return "<header>\n<p class=\"brand\">lowtide profile</p>\n<h1><code>" +
         escaped(command_of(trace, kMostLetters)) + "</code></h1>\n<dl>\n" +
         fact("started", trace.started_unix_ms > 0 ? date_text(trace.started_unix_ms) : "") +
         fact("ran for", time_text(seconds_of(trace))) + fact("ended", ended(trace)) +
         fact("readings", grouped(trace.readings.size())) + fact("machine", trace.machine) +
         "</dl>\n" +
         (trace.cut
              ? "<p class=\"note\">The last line of the trace was incomplete and has been left "
                "out.</p>\n"
              : "") +
         "</header>\n";
}

std::string page_verdict(const Verdict& verdict) {
  return std::string("<section class=\"verdict\" aria-labelledby=\"verdict\" data-kind=\"") +
         verdict_word(verdict.kind) + "\">\n<p class=\"kind\">" + title_of(verdict.kind) +
         "</p>\n<h2 id=\"verdict\">" + escaped(verdict.headline) + "</h2>\n" +
         (verdict.advice.empty() ? "" : "<h3>What to do</h3>\n" + list(verdict.advice)) +
         "</section>\n";
}

std::string page_evidence(const Verdict& verdict) {
  std::string out = verdict.evidence.empty() ? "" : list(verdict.evidence);
  if (!verdict.unknown.empty()) out += "<h3>Unknown</h3>\n" + list(verdict.unknown);
  return out;
}

std::string page_legend(const std::vector<LegendEntry>& entries) {
  std::string out = "<ul class=\"legend\" id=\"legend\" aria-label=\"legend\">\n";
  for (const LegendEntry& entry : entries) {
    out +=
        "<li><span class=\"entry\"><svg class=\"swatch lt-chart\" width=\"22\" height=\"14\" "
        "aria-hidden=\"true\">" +
        entry.sign + "</svg><span>" + escaped(entry.title) + "</span></span></li>\n";
  }
  return out + "</ul>\n";
}

std::string page_words() {
  return "<details class=\"words\">\n<summary>What do these terms mean?</summary>\n<dl>\n"
         "<dt>resident (RSS)</dt><dd>The processes\u2019 memory that is currently in RAM: heap + "
         "mapped files + shared. A page that two processes share counts twice in the sum.</dd>\n"
         "<dt>heap</dt><dd>Private memory that the program allocated. Only the program can release "
         "it, so steady growth here is a leak.</dd>\n"
         "<dt>mapped files</dt><dd>Pages of files that the program maps (np.memmap, shared "
         "libraries). They are part of the page cache: the kernel reclaims them when memory is "
         "short and reads them again when they are touched.</dd>\n"
         "<dt>libraries</dt><dd>Programs, shared libraries and the files that come with them "
         "(locales, caches of the C library). Every process maps them; they are counted "
         "together.</dd>\n"
         "<dt>shared</dt><dd>Shared memory and tmpfs. It stays until every process has released "
         "it.</dd>\n"
         "<dt>page tables</dt><dd>The kernel\u2019s index of the mapped pages: 8 bytes per 4 KiB "
         "page. They are not part of RSS, and the kernel cannot reclaim them while the map "
         "exists.</dd>\n"
         "<dt>page cache</dt><dd>File contents that the kernel keeps in otherwise unused RAM. The "
         "page cache belongs to no process and is reclaimed first. Mapped pages are part of it. "
         "The "
         "light area at the top of the chart is the rest: cached pages of the files in the table "
         "below that no process maps.</dd>\n"
         "<dt>memory limit</dt><dd>The tightest limit of the memory group (cgroup), as set by a "
         "container or a job system. The page cache counts towards it, but is reclaimed before "
         "anything is killed.</dd>\n"
         "<dt>unknown</dt><dd>It could not be measured. The chart hatches that time or leaves "
         "a gap, and it never counts as 0.</dd>\n"
         "<dt>between two readings of the files</dt><dd>How much of each file is mapped is "
         "measured rarely, because that is expensive. In between, the chart draws a straight line; "
         "the sum over all files is measured every time.</dd>\n</dl>\n</details>\n";
}

}  // namespace lowtide
