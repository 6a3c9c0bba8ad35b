#include "stop.h"

#include <atomic>
#include <csignal>

namespace lowtide::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

std::atomic<int> noted{0};  // the signal received; 0: none

void note(int number) {
  noted = number;
  (void)std::signal(number, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  noted = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    before_[i] = std::signal(kSignals[i], note);
    if (before_[i] == SIG_IGN) (void)std::signal(kSignals[i], SIG_IGN);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (before_[i] != SIG_ERR) (void)std::signal(kSignals[i], before_[i]);
  }
}

bool StopSignals::came() const {
  return noted != 0;
}

int StopSignals::exit_code() const {
  return 128 + noted;
}

}  // namespace lowtide::cli
