// When a store is asked, and which of its answers count.
#include "http/asked_signer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

namespace lowtide::asked_signer_test {
namespace {

// Answers http://host/1, /2, ...; every answer but the first waits for one release of `gate`.
struct Store {
  SignedRequest operator()(const std::string&) {
    const int number = ++asked;
    if (number > 1) gate.acquire();
    SignedRequest answer;
    answer.url = "http://host/" + std::to_string(number);
    answer.expires_unix = std::time(nullptr) + 30;  // less than a minute: renewed at once
    return answer;
  }
  std::atomic<int> asked{0};
  std::counting_semaphore<> gate{0};
};

void wait_until_asked(Store& store, int times) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (store.asked < times) {
    if (std::chrono::steady_clock::now() > end) {
      store.gate.release(1000);  // so that its thread ends
      FAIL() << "asked " << store.asked << " times, not " << times;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string answer_of(const Signer& signer) {
  for (;;) {
    if (const auto found = signer.sign("", false)) return found->url;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(AskedSigner, UsesTheOldAnswerUntilTheNewOneIsThere) {
  Store store;
  const auto signer =
      Asker::signer(std::make_shared<Asker>([&](const std::string& at) { return store(at); }), "s");
  EXPECT_EQ(answer_of(*signer), "http://host/1");
  ASSERT_NO_FATAL_FAILURE(wait_until_asked(store, 2));
  EXPECT_EQ(answer_of(*signer), "http://host/1");
  store.gate.release(1000);
}

TEST(AskedSigner, TakesNoAnswerThatWasAskedForBeforeARefusal) {
  Store store;
  const auto signer =
      Asker::signer(std::make_shared<Asker>([&](const std::string& at) { return store(at); }), "s");
  EXPECT_EQ(answer_of(*signer), "http://host/1");  // and renews it
  ASSERT_NO_FATAL_FAILURE(wait_until_asked(store, 2));
  EXPECT_FALSE(signer->sign("", true));  // the server has refused the first
  store.gate.release();                  // the second arrives
  ASSERT_NO_FATAL_FAILURE(wait_until_asked(store, 3));
  EXPECT_FALSE(signer->sign("", false));
  store.gate.release();
  EXPECT_EQ(answer_of(*signer), "http://host/3");
  store.gate.release(1000);
}

}  // namespace
}  // namespace lowtide::asked_signer_test
