// asked_signer.h - a Signer that asks a function of the caller, for clouds and tools that sign in
// their own way.
#pragma once

#include <memory>
#include <string>

#include "core/remote.h"
#include "lowtide/address.h"
#include "os/per_process.h"

namespace lowtide {

// Asks for many objects, one after the other, on a thread of its own: the function may take long,
// and no request waits for that of another object. The thread starts when something is to be
// renewed. A forked child asks for itself. Any thread.
class Asker {
 public:
  explicit Asker(SignRequest ask);
  ~Asker();

  // Asks on the calling thread, and returns a signer that remembers the answer. It asks again a
  // minute before the answer expires, and when a server has refused it. Throws what the function
  // throws, and std::invalid_argument for an answer that cannot be sent.
  [[nodiscard]] static std::shared_ptr<const Signer> signer(std::shared_ptr<Asker> asker,
                                                            const std::string& address);

 private:
  struct Slot;
  struct Here;
  class Remembering;
  void renew(const std::string& address, std::shared_ptr<Slot> slot);
  void run(Here& here) const noexcept;
  void fill(Slot& slot, const std::string& address) const;

  const SignRequest ask_;
  PerProcess<Here> here_;
};

}  // namespace lowtide
