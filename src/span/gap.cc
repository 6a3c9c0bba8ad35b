#include "span/gap.h"

#include <algorithm>

#include "core/clock.h"

namespace lowtide {
namespace {

constexpr double kFade = 0.98;  // about the last 50 sets count
constexpr std::uint32_t kLeastObservations = 8;
constexpr double kLeastDeterminant =
    1e-3;                      // of the scaled equations; below this the sets were too similar
constexpr double kStep = 0.2;  // how far to move towards the new estimate

// Of a WholeModel.
constexpr std::uint32_t kOtherTurn = 32;
constexpr std::uint64_t kLeastReads = 16;
constexpr std::uint64_t kLeastWholeBytes = 256 * 1024;
constexpr double kMove = 1.0 / 32;  // how far to move towards a new time

// A thread that loses its processor seems slow, so one time counts only up to twice the average.
double moved(double average, double seen) {
  return average + kMove * (std::min(seen, 2 * average) - average);
}

}  // namespace

std::uint32_t GapModel::next() {
  ++turn_;
  return turn_ % 2 == 0 ? best_bytes_ / 4 * 3 : best_bytes_ / 4 * 5;
}

void GapModel::observe(std::uint64_t requests, std::uint64_t bytes, std::uint64_t busy_ns) {
  if (requests < bounds_.least_requests || busy_ns == 0) return;
  // Weighted by 1 / busy: a set that took long because other programs used the disk counts less.
  const double weight = 1.0 / static_cast<double>(busy_ns);
  const double r = static_cast<double>(requests), b = static_cast<double>(bytes);
  const double t = static_cast<double>(busy_ns);
  requests_requests_ = kFade * requests_requests_ + weight * r * r;
  requests_bytes_ = kFade * requests_bytes_ + weight * r * b;
  bytes_bytes_ = kFade * bytes_bytes_ + weight * b * b;
  requests_busy_ = kFade * requests_busy_ + weight * r * t;
  bytes_busy_ = kFade * bytes_busy_ + weight * b * t;
  if (++observations_ < kLeastObservations) return;

  const double scale = requests_requests_ * bytes_bytes_;
  const double determinant = scale - requests_bytes_ * requests_bytes_;
  if (determinant < kLeastDeterminant * scale) return;
  const double request_ns =
      (requests_busy_ * bytes_bytes_ - bytes_busy_ * requests_bytes_) / determinant;
  const double byte_ns =
      (bytes_busy_ * requests_requests_ - requests_busy_ * requests_bytes_) / determinant;
  if (request_ns <= 0 || byte_ns <= 0) return;
  const double estimate = std::clamp(request_ns / byte_ns, static_cast<double>(bounds_.least_bytes),
                                     static_cast<double>(bounds_.most_bytes));
  best_bytes_ = static_cast<std::uint32_t>((1 - kStep) * best_bytes_ + kStep * estimate);
}

bool WholeModel::worth(std::uint64_t distance_bytes) {
  const std::uint64_t best = this->distance_bytes();
  const bool close = distance_bytes >= best / 2 && distance_bytes <= best * 2;
  const bool other = close && ++turn_ % kOtherTurn == 0;
  return (distance_bytes <= best) != other;
}

void WholeModel::read_singly(std::uint64_t reads, std::uint64_t ns) {
  if (reads < kLeastReads) return;
  read_ns_ = moved(read_ns_, static_cast<double>(ns) / static_cast<double>(reads));
  // A machine that is slow at one is slow at the other, until that is measured too.
  if (!knows_bytes_) byte_ns_ = read_ns_ / kStartReadNs * kStartByteNs;
  fit();
}

void WholeModel::read_whole(std::uint64_t bytes, std::uint64_t ns) {
  if (bytes < kLeastWholeBytes) return;
  byte_ns_ = moved(byte_ns_, static_cast<double>(ns) / static_cast<double>(bytes));
  knows_bytes_ = true;
  fit();
}

void WholeModel::fit() {
  const double bytes = std::min<double>(read_ns_ / byte_ns_, GapModel::kMostBytes);
  distance_bytes_.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
}

void LaneGap::ended(const Tally& tally, bool counts) {
  const std::uint64_t now = now_ns();
  if (merge_ && counts) {
    model_.observe(tally.requests, tally.bytes, now - std::max(tally.started_ns, ended_ns_));
    best_.store(std::min(model_.best(), most_bytes_), std::memory_order_relaxed);
  }
  ended_ns_ = now;
}

}  // namespace lowtide
