// compare.h - several recordings side by side, on equal axes: a page, and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowtide/profile.h"

namespace lowtide {

// One recording, and its row of the table.
struct Compared {
  std::string title;
  std::string note;                    // below the title
  bool ours = false;                   // highlighted
  std::optional<Recording> recording;  // empty: there is none, and `note` says why
  std::vector<std::string> cells;      // one per column of the table
};

// Recordings whose pictures have the same axes.
struct ComparedSection {
  std::string title, note;
  std::vector<Compared> entries;
};

struct Comparison {
  std::string title;
  std::vector<std::string> lead;  // paragraphs
  std::vector<std::string> columns;
  std::vector<ComparedSection> sections;
};

// Writes a file in the format of its suffix. It appears whole or not at all.
// - .html: a page that needs neither network nor script, with all pictures and tables.
// - .svg: the first four pictures of the first section, two in a row, with a legend.
// Throws IoError.
void save_comparison(const Comparison& comparison, const std::string& path);

}  // namespace lowtide
