// A named check a process: `./runtime NAME`. What fails says where and ends with 1.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "emulator/emulator.h"

#define REQUIRE(condition)                                                                             \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      const char* said = aclGetRecentErrMsg();                                                         \
      fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, said == nullptr ? "" : said); \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)
#define OK(call) REQUIRE((call) == 0)

inline bool message_has(const char* words) {
  const char* said = aclGetRecentErrMsg();
  return said != nullptr && strstr(said, words) != nullptr;
}

inline std::map<std::string, void (*)()>& all_checks() {
  static std::map<std::string, void (*)()> all;
  return all;
}

#define CASE(name)                                                          \
  static void name();                                                       \
  static const bool name##_known = (all_checks()[#name] = name) != nullptr; \
  static void name()

inline int run_named(int argc, char** argv) {
  if (argc == 2 && all_checks().count(argv[1]) == 1) {
    all_checks()[argv[1]]();
    return 0;
  }
  for (const auto& [name, check] : all_checks()) printf("%s\n", name.c_str());
  return argc == 1 ? 0 : 2;
}

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

inline void start() {
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
}

inline aclrtStream new_stream() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  return stream;
}

// Device memory with n floats in it.
inline void* floats(const std::vector<float>& values) {
  void* memory = nullptr;
  size_t bytes = values.size() * sizeof(float);
  OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return memory;
}

inline std::vector<float> host(const void* memory, size_t n) {
  std::vector<float> values(n);
  OK(aclrtMemcpy(values.data(), n * sizeof(float), memory, n * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
  return values;
}

inline aclTensor* row(void* memory, int64_t n, int64_t offset = 0, int64_t storage = -1) {
  int64_t stride = 1, elements = storage < 0 ? n : storage;
  return aclCreateTensor(&n, 1, ACL_FLOAT, &stride, offset, ACL_FORMAT_ND, &elements, 1, memory);
}
