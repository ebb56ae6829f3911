#include "core/faults.h"

#include <fnmatch.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace emu {
namespace {

struct Rule {
  std::string pattern;
  unsigned long first = 1, last = ~0UL;  // which calls since the rule was made
  Injection what;
  unsigned long seen = 0;
};

struct Rules {
  std::mutex lock;
  std::vector<Rule> list;
  std::atomic<bool> any{false};

  Rules() {
    const char* given = getenv("ACLNN_EMULATOR_FAULTS");
    if (given != nullptr) add(given);
  }
  void add(const std::string& faults);
};

std::string strip(const std::string& s) {
  size_t from = s.find_first_not_of(" \t\n"), to = s.find_last_not_of(" \t\n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

[[noreturn]] void reject(const std::string& rule, const char* why) {
  throw Error{ACL_ERROR_INVALID_PARAM,
              text("fault '%s': %s; the form is NAME[#N|#N+]=CODE or NAME[#N|#N+]=ACTION[:NUMBER]", rule.c_str(), why)};
}

unsigned long number(const std::string& digits, const std::string& rule, const char* what) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) reject(rule, what);
  return strtoul(digits.c_str(), nullptr, 10);
}

Injection parse_action(const std::string& action, const std::string& rule) {
  if (action.empty()) reject(rule, "no action");
  if (action.find_first_not_of("0123456789") == std::string::npos)
    return {true, static_cast<int>(number(action, rule, "")), "", 0};
  size_t colon = action.find(':');
  std::string name = action.substr(0, colon);
  bool numbered = name == "fault" || name == "slow";
  for (const char* known :
       {"wrong", "zeros", "nan", "stale", "overrun", "underrun", "input", "fault", "hang", "crash", "slow"}) {
    if (name != known) continue;
    if (numbered != (colon != std::string::npos))
      reject(rule, numbered ? "the action needs :NUMBER" : "the action takes no number");
    return {false, 0, name,
            numbered ? static_cast<long>(number(action.substr(colon + 1), rule, "not a number after ':'")) : 0};
  }
  reject(rule, "unknown action; known: wrong zeros nan stale overrun underrun input fault:CODE hang crash slow:MS");
}

Rule parse(const std::string& rule) {
  size_t equals = rule.find('=');
  if (equals == std::string::npos) reject(rule, "no '='");
  std::string name = strip(rule.substr(0, equals));
  Rule out;
  size_t hash = name.find('#');
  if (hash != std::string::npos) {
    std::string when = name.substr(hash + 1);
    bool onwards = !when.empty() && when.back() == '+';
    out.first = number(onwards ? when.substr(0, when.size() - 1) : when, rule, "not a number after '#'");
    if (out.first == 0) reject(rule, "calls count from 1");
    if (!onwards) out.last = out.first;
    name = name.substr(0, hash);
  }
  if (name.empty()) reject(rule, "no function name");
  out.pattern = name;
  out.what = parse_action(strip(rule.substr(equals + 1)), rule);
  return out;
}

void Rules::add(const std::string& faults) {
  std::vector<Rule> parsed;
  for (size_t from = 0; from <= faults.size();) {
    size_t to = std::min(faults.find(';', from), faults.size());
    std::string rule = strip(faults.substr(from, to - from));
    if (!rule.empty()) parsed.push_back(parse(rule));
    from = to + 1;
  }
  std::lock_guard<std::mutex> hold(lock);
  list.insert(list.end(), parsed.begin(), parsed.end());
  any = !list.empty();
}

Rules& rules() { return immortal<Rules>(); }

}  // namespace

void inject(const std::string& faults) { rules().add(faults); }

void clear_faults() {
  std::lock_guard<std::mutex> hold(rules().lock);
  rules().list.clear();
  rules().any = false;
}

Injection injection_for(const char* function) {
  if (!rules().any) return {};
  std::lock_guard<std::mutex> hold(rules().lock);
  Injection found;
  bool decided = false;
  for (Rule& rule : rules().list) {
    if (fnmatch(rule.pattern.c_str(), function, 0) != 0) continue;
    rule.seen++;
    if (decided || rule.seen < rule.first || rule.seen > rule.last) continue;
    found = rule.what;
    decided = true;
  }
  return found;
}

}  // namespace emu
