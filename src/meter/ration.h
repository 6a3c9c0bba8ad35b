// ration.h - decides when each part of a reading is due, so that all parts stay within their share
// of a core. Pure arithmetic over seconds that the caller measured.
#pragma once

#include <algorithm>

namespace lowtide {

class Ration {
 public:
  struct Rule {
    double share;        // of one core, in the long run
    double allowance_s;  // CPU seconds that may be spent at once, for short-lived programs
    double gap_share;    // the gap between two times, as a fraction of the time since the start
    double least_gap_s, most_gap_s;
  };
  explicit Ration(const Rule& rule) : rule_(rule) {}

  // Whether it is due. `expected_s` is the expected cost of the first time; later times are
  // expected to cost as much as the previous one.
  [[nodiscard]] bool due(double seconds, double expected_s = 0) const {
    return gap_passed(seconds) && affordable(seconds, expected_s);
  }
  // The same, regardless of cost.
  [[nodiscard]] bool gap_passed(double seconds) const {
    return !taken_ || seconds >= last_s_ + gap_s(seconds);
  }
  [[nodiscard]] bool affordable(double seconds, double expected_s = 0) const {
    const double next_s = taken_ ? last_cost_s_ : expected_s;
    return spent_s_ + next_s <= rule_.allowance_s + rule_.share * seconds;
  }
  // How long until it is due.
  [[nodiscard]] double wait_s(double seconds) const {
    if (!taken_) return 0;
    const double affordable_at = (spent_s_ + last_cost_s_ - rule_.allowance_s) / rule_.share;
    return std::max({0.0, last_s_ + gap_s(seconds) - seconds, affordable_at - seconds});
  }
  void taken(double seconds, double cost_s) {
    taken_ = true;
    last_s_ = seconds;
    last_cost_s_ = cost_s;
    spent_s_ += cost_s;
  }

 private:
  [[nodiscard]] double gap_s(double seconds) const {
    return std::clamp(seconds * rule_.gap_share, rule_.least_gap_s, rule_.most_gap_s);
  }

  Rule rule_;
  bool taken_ = false;
  double last_s_ = 0, last_cost_s_ = 0, spent_s_ = 0;
};

}  // namespace lowtide
