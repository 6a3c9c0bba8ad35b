#include "http/asked_signer.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <deque>
#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "http/address.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::int64_t kRenewAheadS = 60;

bool has_line_end(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) != std::string::npos;
}

SignedUrl checked(const SignedRequest& answer) {
  SignedUrl out;
  out.url = parse_http(answer.url).url();
  for (const auto& [name, value] : answer.headers) {
    if (name.empty() || has_line_end(name) || has_line_end(value)) {
      throw std::invalid_argument("store: a header is empty or contains a line break");
    }
    out.headers.push_back(name + ": " + value);
  }
  return out;
}

}  // namespace

// What is known about one object.
struct Asker::Slot {
  Mutex mutex;
  std::optional<SignedUrl> current LOWTIDE_GUARDED_BY(mutex);
  std::int64_t expires_unix LOWTIDE_GUARDED_BY(mutex) = 0;
  bool asked LOWTIDE_GUARDED_BY(mutex) = false;   // an answer is on its way
  bool stale LOWTIDE_GUARDED_BY(mutex) = false;   // it was asked for before a server refused one
  bool failed LOWTIDE_GUARDED_BY(mutex) = false;  // and it was an error
};

struct Asker::Here {
  struct Question {
    std::string address;
    std::shared_ptr<Slot> slot;
  };
  ~Here() {
    {
      const MutexLock lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  Mutex mutex;
  CondVar changed;
  std::deque<Question> questions LOWTIDE_GUARDED_BY(mutex);
  bool stopping LOWTIDE_GUARDED_BY(mutex) = false;
  std::thread thread;  // started under the lock
};

class Asker::Remembering final : public Signer {
 public:
  Remembering(std::shared_ptr<Asker> asker, std::string address)
      : asker_(std::move(asker)), address_(std::move(address)) {}

  void ask_now() const { asker_->fill(*slot_.get(), address_); }

  std::optional<SignedUrl> sign(const std::string&, bool again) const override {
    const std::shared_ptr<Slot> slot = slot_.get();
    std::optional<SignedUrl> valid;
    bool ask = false;
    {
      const MutexLock lock(slot->mutex);
      if (std::exchange(slot->failed, false)) throw std::runtime_error("the store failed");
      if (again) {
        slot->current.reset();
        slot->stale = slot->asked;
      }
      const std::int64_t now = std::time(nullptr);
      const bool expires = slot->current.has_value() && slot->expires_unix != 0;
      if (expires && now >= slot->expires_unix) slot->current.reset();
      const bool soon = expires && now >= slot->expires_unix - kRenewAheadS;
      ask = (!slot->current || soon) && !std::exchange(slot->asked, true);
      valid = slot->current;
    }
    if (ask) asker_->renew(address_, slot);
    return valid;
  }

 private:
  const std::shared_ptr<Asker> asker_;
  const std::string address_;
  PerProcess<std::shared_ptr<Slot>> slot_{
      [] { return std::make_unique<std::shared_ptr<Slot>>(std::make_shared<Slot>()); }};
};

Asker::Asker(SignRequest ask) : ask_(std::move(ask)) {}
Asker::~Asker() = default;

std::shared_ptr<const Signer> Asker::signer(std::shared_ptr<Asker> asker,
                                            const std::string& address) {
  auto made = std::make_shared<const Remembering>(std::move(asker), address);
  made->ask_now();
  return made;
}

// A request is signed anew only once after a refusal. So an answer that was asked for before the
// refusal, and may be as old as the refused one, is not good enough.
void Asker::fill(Slot& slot, const std::string& address) const {
  for (;;) {
    const SignedRequest answer = ask_(address);
    SignedUrl with = checked(answer);
    const MutexLock lock(slot.mutex);
    if (std::exchange(slot.stale, false)) continue;
    slot.current = std::move(with);
    slot.expires_unix = answer.expires_unix;
    slot.asked = false;
    return;
  }
}

void Asker::renew(const std::string& address, std::shared_ptr<Slot> slot) {
  Here& here = here_.get();
  {
    const MutexLock lock(here.mutex);
    if (!here.thread.joinable()) {
      here.thread = start_quiet_thread("a thread that signs", [this, &here] { run(here); });
    }
    here.questions.push_back({address, std::move(slot)});
  }
  here.changed.notify_one();
}

void Asker::run(Here& here) const noexcept {
  for (;;) {
    Here::Question next;
    {
      const MutexLock lock(here.mutex);
      while (!here.stopping && here.questions.empty()) here.changed.wait(here.mutex);
      if (here.stopping) return;
      next = std::move(here.questions.front());
      here.questions.pop_front();
    }
    try {
      fill(*next.slot, next.address);
    } catch (...) {
      const MutexLock lock(next.slot->mutex);
      next.slot->asked = next.slot->stale = false;
      next.slot->failed = true;
    }
  }
}

}  // namespace lowtide
