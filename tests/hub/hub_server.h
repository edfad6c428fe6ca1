// Starts tests/hub/server.py, a hub on this machine.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace sinkscope::testing {

/// The commit of every repository, unless told otherwise.
inline const std::string served_commit = [] {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "c0";
  return text;
}();

/// Text without short periods: a piece at a wrong place changes it.
inline std::string large_content(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + (i * i + i / 7) % 26);
  return content;
}

class HubServer {
 public:
  HubServer() {
    int to_server[2], from_server[2];
    if (::pipe2(to_server, O_CLOEXEC) != 0 || ::pipe2(from_server, O_CLOEXEC) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_server[0], STDIN_FILENO);
      ::dup2(from_server[1], STDOUT_FILENO);
      ::execl("/usr/bin/python3", "python3", SINKSCOPE_SOURCE_DIR "/tests/hub/server.py",
              folder_.path().c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to_server[0]);
    ::close(from_server[1]);
    life_ = to_server[1];  // the server ends when this end is closed, even if the test is killed
    std::FILE* ports = ::fdopen(from_server[0], "r");
    int hub = 0, cdn = 0;
    if (std::fscanf(ports, "%d %d", &hub, &cdn) != 2) std::abort();
    std::fclose(ports);
    endpoint_ = "http://127.0.0.1:" + std::to_string(hub);
  }
  ~HubServer() {
    ::close(life_);
    ::waitpid(child_, nullptr, 0);
  }
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  /// A file of a repository, "ORG/NAME/FILE".
  void add(const std::string& file, const std::string& content) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    write_file(folder_ / file, content);
  }

  /// Without repositories, well-behaved, nothing asked yet.
  void clear() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      std::filesystem::remove_all(entry.path());
    behave(nlohmann::json::object());
  }

  /// See server.py. Rules count their times anew.
  void behave(nlohmann::json behaviour) {
    behaviour["serial"] = ++serial_;
    write_file(folder_ / "behaviour.new", behaviour.dump());
    std::filesystem::rename(folder_ / "behaviour.new", folder_ / "behaviour.json");
  }

  struct Request {
    std::string port, path, range, authorization;  // "" where the request had none
  };
  /// All requests since the last call.
  std::vector<Request> take_requests() const {
    std::istringstream lines(content_of(folder_ / "requests.jsonl"));
    write_file(folder_ / "requests.jsonl", "");
    std::vector<Request> requests;
    for (std::string line; std::getline(lines, line);) {
      const auto request = nlohmann::json::parse(line);
      const auto text = [&](const char* key) {
        return request[key].is_null() ? std::string() : request[key].get<std::string>();
      };
      requests.push_back({text("port"), text("path"), text("range"), text("authorization")});
    }
    return requests;
  }

  /// The most answers that slept at one time since the last call.
  int take_most_waiting() const {
    std::istringstream lines(content_of(folder_ / "waiting"));
    write_file(folder_ / "waiting", "");
    int most = 0;
    for (int count = 0; lines >> count;) most = std::max(most, count);
    return most;
  }

 private:
  TemporaryFolder folder_;
  pid_t child_ = -1;
  int life_ = -1;
  int serial_ = 0;
  std::string endpoint_;
};

}  // namespace sinkscope::testing
