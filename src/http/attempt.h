// attempt.h - one GET of one range through one easy handle of libcurl, and what became of it. Used
// by the transport's thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "http/address.h"
#include "http/answer.h"
#include "http/curl.h"
#include "http/transport.h"

namespace lowtide {

class Attempt;

// One request of the caller, from its first try to its end.
struct Transfer {
  HttpRequest* request = nullptr;
  std::array<Attempt*, 2> attempts{};  // the second is a hedge
  std::uint64_t reached_bytes = 0;     // of the range: they were handed over
  std::uint64_t furthest_bytes = 0;    // that any try has reached: only more than that is progress
  std::uint32_t tries = 0;
  std::uint64_t progress_ns = 0;  // when a try last got further, or when it was first sent
  std::uint64_t resume_ns = 0;    // not to be sent before
  unsigned redirects = 0;
  Address target;           // where to send it, after redirects
  bool redirected = false;  // to another server: no credential may be sent there
  bool sign_again = false;
  bool asked_again = false;  // the signer was asked again because of a refusal

  [[nodiscard]] bool flying() const { return attempts[0] != nullptr || attempts[1] != nullptr; }
};

struct AttemptSettings {
  const char* authorities = "";  // a file of certificates; empty: those that libcurl knows
  bool by_proxy = false;         // so the machine that we connect to is not the one that answers
};

class Attempt {
 public:
  // Throws std::bad_alloc.
  explicit Attempt(const Curl& curl);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Makes the handle ready to fetch what is left of the transfer. False: the signer is not ready.
  // Throws std::bad_alloc, and what the signer throws.
  [[nodiscard]] bool start(Transfer& transfer, const AttemptSettings& settings, bool hedge);
  // What became of it, once libcurl has finished with it.
  [[nodiscard]] HttpResult finish(CURLcode code);
  void forget() { transfer_ = nullptr; }

  [[nodiscard]] CURL* easy() const { return easy_; }
  [[nodiscard]] Transfer* transfer() const { return transfer_; }
  [[nodiscard]] const Answer& answer() const { return answer_; }
  [[nodiscard]] bool hedge() const { return hedge_; }
  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }
  // How long the server has been silent.
  [[nodiscard]] std::uint64_t silent_ns(std::uint64_t now) const {
    const std::uint64_t since = byte_ns_ != 0 ? byte_ns_ : sent_ns_;
    return now > since ? now - since : 0;
  }
  // From sending to the first byte of the range; 0: none came.
  [[nodiscard]] std::uint64_t first_byte_ns() const { return first_byte_ns_; }

 private:
  static std::size_t on_header(char* data, std::size_t one, std::size_t size, void* self);
  static std::size_t on_body(char* data, std::size_t one, std::size_t size, void* self);
  static int on_connected(void* self, char* remote_ip, char* local_ip, int remote_port,
                          int local_port);
  void set_options(const AttemptSettings& settings);
  void set_headers(const SignedUrl& with);
  void add_header(const std::string& line);
  [[nodiscard]] std::size_t take(const char* data, std::size_t size);
  void judge();
  void judge_range(const ContentRange& range);
  void found_empty();
  [[nodiscard]] HttpFault fault_of(CURLcode code) const;

  const Curl& curl_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
  Transfer* transfer_ = nullptr;
  bool hedge_ = false;
  bool by_proxy_ = false;
  Answer answer_;
  bool judged_ = false;
  bool empty_ = false;  // an object without bytes was opened
  HttpFault verdict_ = HttpFault::none;
  std::uint64_t found_bytes_ = 0;   // with the verdict `ended`
  std::uint64_t begin_bytes_ = 0;   // in the object
  std::uint64_t wanted_bytes_ = 0;  // the body must have as many
  std::uint64_t received_bytes_ = 0;
  std::uint64_t sent_ns_ = 0, byte_ns_ = 0, first_byte_ns_ = 0;
  std::uint32_t cursor_ = 0;
  std::array<char, 1024> refusal_;  // the begin of a body that explains a refusal
  std::size_t refusal_bytes_ = 0;
  std::uint64_t discarded_bytes_ = 0;
};

}  // namespace lowtide
