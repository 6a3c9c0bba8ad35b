// http_server.h - a server on loopback that answers as a test wants: with ranges, or with any
// fault.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lowtide {

struct ServedRequest {
  std::string method;
  std::string target;                          // path and query as they were sent
  std::map<std::string, std::string> headers;  // names in lower case
  int number = 0;                              // from 0, over all connections
  int connection = 0;

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  // Of "Range: bytes=first-last".
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> range() const {
    const std::string text = header("range");
    unsigned long long first = 0, last = 0;
    if (std::sscanf(text.c_str(), "bytes=%llu-%llu", &first, &last) != 2) return std::nullopt;
    return std::pair<std::uint64_t, std::uint64_t>(first, last);
  }
};

struct ServedAnswer {
  int status = 206;
  std::vector<std::string> headers = {};
  std::string body = {};
  std::optional<std::uint64_t> length = std::nullopt;  // Content-Length, where it is not the body's
  std::chrono::milliseconds delay{0};                  // before the head
  std::optional<std::size_t> stop_after = std::nullopt;  // bytes of the body; what then happens:
  bool reset = true;                                     // the connection breaks
  std::chrono::milliseconds stall{0};  // or nothing comes for so long, then the rest
};

// The answer of a server that does it right.
inline ServedAnswer whole_answer(const ServedRequest& request, const std::string& object,
                                 const std::string& etag = "\"v1\"") {
  ServedAnswer answer;
  if (!etag.empty()) answer.headers.push_back("ETag: " + etag);
  const std::string wanted = request.header("if-match");
  if (!wanted.empty() && wanted != etag) return {.status = 412, .body = "changed"};
  const auto range = request.range();
  if (!range) {
    answer.status = 200;
    answer.body = object;
    return answer;
  }
  const std::string total = std::to_string(object.size());
  if (range->first >= object.size()) {
    return {.status = 416, .headers = {"Content-Range: bytes */" + total}, .body = "beyond"};
  }
  const std::uint64_t last = std::min<std::uint64_t>(range->second, object.size() - 1);
  answer.headers.push_back("Content-Range: bytes " + std::to_string(range->first) + "-" +
                           std::to_string(last) + "/" + total);
  answer.body = object.substr(range->first, last - range->first + 1);
  return answer;
}

class HttpServer {
 public:
  using Answer = std::function<ServedAnswer(const ServedRequest&)>;

  explicit HttpServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&where), size) != 0 ||
        ::listen(listener_, 256) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    port_ = ntohs(where.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~HttpServer() {
    std::vector<std::thread> serving;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      ::shutdown(listener_, SHUT_RDWR);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
      changed_.notify_all();
    }
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      serving.swap(serving_);
    }
    for (std::thread& thread : serving) thread.join();
    ::close(listener_);
  }

  [[nodiscard]] std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] std::vector<ServedRequest> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (fd < 0 || stopping_) {
        if (fd >= 0) ::close(fd);
        return;
      }
      const int now = 1;  // without it, a head and its body may be 40 ms apart
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
      open_.insert(fd);
      serving_.emplace_back([this, fd, number = connections_++] { serve(fd, number); });
    }
  }

  void serve(int fd, int connection) {
    std::string held;
    while (auto request = next_request(fd, &held)) {
      request->connection = connection;
      request->number = requests_++;
      {
        const std::lock_guard lock(mutex_);
        seen_.push_back(*request);
      }
      if (!send_answer(fd, *request, answer_(*request))) break;
    }
    const std::lock_guard lock(mutex_);
    open_.erase(fd);
    ::close(fd);
  }

  static std::optional<ServedRequest> next_request(int fd, std::string* held) {
    std::size_t end = 0;
    while ((end = held->find("\r\n\r\n")) == held->npos) {
      char buffer[4096];
      const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) return std::nullopt;
      held->append(buffer, static_cast<std::size_t>(got));
      if (held->front() == '\x16') {  // the first byte of TLS
        send_all(fd, "HTTP/1.1 400 Not here\r\n\r\n");
        return std::nullopt;
      }
    }
    const std::string head = held->substr(0, end + 2);
    held->erase(0, end + 4);
    ServedRequest request;
    const std::size_t line = head.find("\r\n"), one = head.find(' '), two = head.find(' ', one + 1);
    request.method = head.substr(0, one);
    request.target = head.substr(one + 1, two - one - 1);
    for (std::size_t at = line + 2; at < head.size();) {
      const std::size_t stop = head.find("\r\n", at), colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      request.headers[name] = head.substr(colon + 2, stop - colon - 2);
      at = stop + 2;
    }
    return request;
  }

  bool send_answer(int fd, const ServedRequest& request, const ServedAnswer& answer) {
    if (!pause(answer.delay)) return false;
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Said\r\nContent-Length: " +
                       std::to_string(answer.length.value_or(answer.body.size())) + "\r\n";
    for (const std::string& line : answer.headers) head += line + "\r\n";
    if (!send_all(fd, head + "\r\n")) return false;
    if (request.method == "HEAD") return true;
    const std::string_view body = answer.body;
    if (!answer.stop_after) return send_all(fd, body) && !answer.length;
    const std::size_t stop = std::min(*answer.stop_after, body.size());
    if (!send_all(fd, body.substr(0, stop))) return false;
    if (answer.stall.count() > 0) return pause(answer.stall) && send_all(fd, body.substr(stop));
    pause(std::chrono::milliseconds(5));  // so that the bytes are read before the reset arrives
    if (answer.reset) {
      const linger now{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    return false;
  }

  static bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // False: the server ends.
  bool pause(std::chrono::milliseconds length) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, length, [&] { return stopping_; });
  }

  const Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  std::atomic<int> requests_{0}, connections_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::set<int> open_;
  std::vector<std::thread> serving_;
  std::vector<ServedRequest> seen_;
};

}  // namespace lowtide
