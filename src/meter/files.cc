#include "meter/files.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "meter/group.h"
#include "system/maps.h"

namespace lowtide {
namespace {

using Identity = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

// All mappings of one file, over all processes.
struct MappedFile {
  FileMap one;  // any of them
  std::uint64_t mapped = 0, pss = 0;
};

using MappedFiles = std::map<Identity, MappedFile>;

MappedFiles join(std::vector<FileMap> maps) {
  MappedFiles files;
  for (FileMap& map : maps) {
    MappedFile& file = files[{map.device, map.inode}];
    file.mapped += map.mapped;
    file.pss += map.pss;
    if (file.one.path.empty()) file.one = std::move(map);
  }
  return files;
}

FileReading told_of(const FileMap& map, const Known<FileState>& state) {
  FileReading reading;
  reading.path = map.path;
  reading.deleted = map.deleted;
  reading.device = map.device;
  reading.inode = map.inode;
  reading.size = state ? Figure::known(state->size) : Figure::unknown(state.why);
  reading.cached = state ? state->cached : Figure::unknown(state.why);
  return reading;
}

void set_mapped(FileReading* reading, std::uint64_t mapped, std::uint64_t pss,
                const std::string& missing) {
  reading->mapped = missing.empty() ? Figure::known(mapped) : Figure::unknown(missing);
  reading->pss = missing.empty() ? Figure::known(pss) : Figure::unknown(missing);
}

// If no process showed its maps, it is unknown whether a file is mapped.
FileReading watched(const std::string& path, MappedFiles* files, const std::string& missing) {
  const Known<FileState> state = file_state(path);
  FileMap map;
  map.path = path;
  MappedFiles::iterator found = files->end();
  if (state) {
    map.device = state->device;
    map.inode = state->inode;
    found = std::find_if(files->begin(), files->end(), [&](const auto& file) {
      return file.first.second == map.inode &&
             (file.first.first == map.device || file.second.one.path == path);
    });
  }
  FileReading reading = told_of(map, state);
  const bool mapped = found != files->end();
  set_mapped(&reading, mapped ? found->second.mapped : 0, mapped ? found->second.pss : 0,
             mapped ? "" : missing);
  if (mapped) files->erase(found);
  return reading;
}

}  // namespace

FilesReading read_files(const SystemRoot& root, const std::vector<int>& pids,
                        const std::vector<std::string>& watch) {
  FilesReading reading;
  std::vector<FileMap> maps;
  std::string missing;
  bool one = pids.empty();
  for (const int pid : pids) {
    Known<ProcessMaps> told = read_maps(root, pid);
    reading.pss[pid] = told ? Figure::known(told->pss) : Figure::unknown(told.why);
    if (!told) {
      missing = told.why;
      continue;
    }
    one = true;
    std::move(told.value->files.begin(), told.value->files.end(), std::back_inserter(maps));
  }
  if (one) missing.clear();
  MappedFiles files = join(std::move(maps));
  for (const std::string& path : watch) reading.files.push_back(watched(path, &files, missing));

  std::vector<MappedFile> most;
  for (auto& [identity, file] : files) {
    if (file.mapped != 0) most.push_back(std::move(file));
  }
  std::sort(most.begin(), most.end(), [](const MappedFile& a, const MappedFile& b) {
    return a.mapped != b.mapped ? a.mapped > b.mapped : a.one.path < b.one.path;
  });
  most.resize(std::min(most.size(), kMostFiles));
  for (const MappedFile& file : most) {
    const Known<FileState> state = file_state(root, file.one);
    if (state && state->in_memory) continue;  // counted as shared memory, not as file pages
    reading.files.push_back(told_of(file.one, state));
    set_mapped(&reading.files.back(), file.mapped, file.pss, "");
  }
  return reading;
}

}  // namespace lowtide
