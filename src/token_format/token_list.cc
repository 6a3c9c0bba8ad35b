#include "token_format/token_list.h"

#include <algorithm>
#include <span>

#include "core/quote.h"
#include "format/json_reader.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

std::string list_text(const TokenFile& file) {
  if (file.file_bytes > kMaxTokenListBytes) {
    throw FormatError(file.path + ": expected a list of at most " +
                      format_bytes(kMaxTokenListBytes) + ", found " +
                      std::to_string(file.file_bytes) + " bytes");
  }
  constexpr std::uint64_t kSliceBytes = 1 << 20;
  std::string text(file.file_bytes, '\0');
  for (std::uint64_t done = 0; done < text.size();) {
    const std::uint64_t now = std::min(text.size() - done, kSliceBytes);
    file.read(done, std::as_writable_bytes(std::span(text).subspan(done, now)));
    done += now;
  }
  return text;
}

// The format whose key the text has. It reads all of the text, so that anything else in it that is
// not JSON is found as well.
const TokenFormat& format_of_list(std::string_view text) {
  const TokenFormat* found = nullptr;
  JsonReader json(text);
  std::string key;
  json.begin_object();
  while (json.next_key(&key)) {
    for (const TokenFormat* const format : token_formats()) {
      if (format->read_list == nullptr || key != format->list_key) continue;
      if (found != nullptr) json.fail("one list of files");
      found = format;
    }
    json.skip();
  }
  json.end();
  if (found != nullptr) return *found;
  std::string keys;
  for (const TokenFormat* const format : token_formats()) {
    if (format->read_list == nullptr) continue;
    keys += (keys.empty() ? "" : " or ") + excerpt(format->list_key) + " (" +
            std::string(format->word) + ")";
  }
  throw FormatError(
      "expected the key " + keys +
      ", found neither; if it does not list the token files, pass their paths instead");
}

// What turns the packed file into the raw one.
std::string unpacking_command(const ListedFile& listed) {
  const std::string_view algorithm =
      std::string_view(listed.compression).substr(0, listed.compression.find(':'));
  const std::string& from = listed.packed_name;
  const std::string& to = listed.name;
  if (algorithm == "zstd") return "zstd -d " + from + " -o " + to;
  if (algorithm == "gz") return "gunzip -k " + from;
  if (algorithm == "bz2") return "bunzip2 -k " + from;
  if (algorithm == "br") return "brotli -d " + from + " -o " + to;
  // Its command writes another container than streaming does.
  if (algorithm == "snappy") {
    return "python -c \"import snappy; open('" + to + "', 'wb').write(snappy.decompress(open('" +
           from + "', 'rb').read()))\"";
  }
  return "use the tool that wrote it";
}

[[noreturn]] void fail_listed(const TokenFileList& list, const std::string& path,
                              const std::string& what, std::uint64_t expected,
                              std::uint64_t found) {
  throw FormatError(path + ": expected " + std::to_string(expected) + " " + what + ", as " +
                    list.path + " says, found " + std::to_string(found));
}

}  // namespace

bool is_token_list(std::string_view path) {
  return path == kTokenListName ||
         (path.ends_with(kTokenListName) && path[path.size() - kTokenListName.size() - 1] == '/');
}

TokenFileList read_token_list(const TokenFile& file, const TokenGiven& given) {
  TokenFileList list;
  const std::string text = list_text(file);
  const TokenFormat* format = nullptr;
  try {
    format = &format_of_list(text);
    format->read_list(text, &list);
  } catch (const FormatError& error) {
    throw FormatError(file.path + ": " + error.what());
  }
  list.path = file.path;
  list.format = format->word;
  if (given.format && *given.format != list.format) {
    throw FormatError(file.path + ": format " + excerpt(*given.format) +
                      " was given, but this is the index of a folder in format " +
                      excerpt(list.format));
  }
  if (given.dtype) check_token_dtype(*given.dtype, file.path);
  if (list.dtype) {
    check_token_dtype(*list.dtype, file.path);
    check_given_dtype(given, *list.dtype, file.path);
  }
  if (list.files.empty())
    throw FormatError(file.path + ": expected data files, found an empty list");
  return list;
}

TokenGiven given_by(const TokenFileList& list, const TokenGiven& given) {
  TokenGiven all = given;
  all.format = list.format;
  if (list.dtype) all.dtype = list.dtype;
  return all;
}

void check_listed_size(const TokenFileList& list, const ListedFile& listed, const TokenFile& file) {
  if (file.file_bytes == listed.file_bytes) return;
  fail_listed(list, file.path, "bytes", listed.file_bytes, file.file_bytes);
}

void check_listed(const TokenFileList& list, const ListedFile& listed, const TokenLayout& layout) {
  const std::uint64_t documents = layout.documents ? layout.documents->documents : 0;
  if (documents != listed.documents) {
    fail_listed(list, layout.data_path, "samples", listed.documents, documents);
  }
  if (listed.tokens && *listed.tokens != layout.tokens) {
    fail_listed(list, layout.data_path, "tokens", *listed.tokens, layout.tokens);
  }
}

void refuse_packed(const TokenFileList& list, const ListedFile& listed) {
  throw FormatError(list.path + ": expected the file " + excerpt(listed.name) +
                    " beside it, found only " + excerpt(listed.packed_name) + " (compression " +
                    excerpt(listed.compression) +
                    "); unpack every file first: " + unpacking_command(listed));
}

std::string listed_name(std::string name) {
  bool inside = !name.empty() && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
  for (std::string_view rest = name; inside;) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    inside = !part.empty() && part != "." && part != "..";
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  if (inside) return name;
  throw FormatError("expected the name of a file in the folder of the list, found " +
                    excerpt(name));
}

}  // namespace lowtide
