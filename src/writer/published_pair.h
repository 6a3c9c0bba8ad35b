// published_pair.h - a data file and its index, published so that an index never stands beside the
// data of another time.
//
// Two renames cannot happen at once. So the old index leaves its name first and the new one gets it
// last: in between there is data without an index. The old files keep hidden names until then, from
// which an error, or after a crash the next writer, restores them.
#pragma once

#include <string>

#include "writer/published_file.h"

namespace lowtide {

// Call before the PublishedFiles of a pair are made. If a writer died while it published, the old
// pair has its names again; other remains of it are removed. Does nothing while such a writer
// lives. Throws IoError.
void recover_pair(const std::string& data_path, const std::string& index_path);

// Publishes both. After an error the old pair has its names, or neither name exists if there was
// none. Throws IoError.
void publish_pair(PublishedFile& data, PublishedFile& index);

}  // namespace lowtide
