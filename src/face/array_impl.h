// array_impl.h - the part of an Array that Batches share with it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "face/source.h"

namespace lowtide {

class Array::Impl {
 public:
  explicit Impl(std::shared_ptr<Source> source);
  ~Impl();

  // The source of this process. After a fork the parent's, whose threads do not exist here, is left
  // alone and a new one is opened. Throws std::invalid_argument when closed.
  [[nodiscard]] std::shared_ptr<Source> source();
  void close();
  [[nodiscard]] bool closed();

  const std::shared_ptr<const Description> description;

 private:
  void notice_fork();

  std::mutex mutex_;
  std::atomic<int> pid_;
  std::shared_ptr<Source> source_;  // nullptr: closed, or a child that has not reopened yet
  bool closed_ = false;
};

}  // namespace lowtide
