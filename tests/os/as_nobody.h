// as_nobody.h - runs a piece of a test as a user with no rights, in a child process.
#pragma once

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace lowtide {

// What `body` returned (at most a few KiB), or a text that starts with "child" where it could not.
template <typename Body>
std::string as_nobody(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) return "child: no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned kNobody = 65534;
    std::string said = "child: cannot become nobody";
    const bool was_root = ::geteuid() == 0;
    if (!was_root ||
        (::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0)) {
      said = body();
    }
    const bool sent = ::write(ends[1], said.data(), said.size()) >= 0;
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    said.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : "child: ended with status " + std::to_string(status);
}

}  // namespace lowtide
