// Operators from outside the emulator: their kernels are compiled into a custom package, their checks answer through a
// function of the process.
#include <atomic>
#include <cmath>

#include "emulator/emulator.h"
#include "ops/op.h"

namespace emu {
namespace {

std::atomic<aclemuChecks> checks{nullptr};
constexpr size_t kMessageRoom = 2000;

std::string quoted(const char* words) {
  std::string out = "\"";
  for (const char* c = words; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      out += std::string("\\") + *c;
    else if (static_cast<unsigned char>(*c) < 0x20)
      out += text("\\u%04x", static_cast<unsigned>(*c));
    else
      out += *c;
  }
  return out + "\"";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return text("%.17g", value);
}

std::string list(const Dims& dims) {
  std::string out;
  for (int64_t dim : dims) out += (out.empty() ? "" : ", ") + std::to_string(dim);
  return "[" + out + "]";
}

std::string json(const Tensor& t) {
  if (!t.present) return "null";
  return text(R"({"shape": %s, "dtype": %d, "format": %d, "strides": %s, "offset": %ld, "storage_shape": %s})",
              list(t.shape).c_str(), t.type, t.format, list(t.strides).c_str(), static_cast<long>(t.offset),
              list(t.storage).c_str());
}

std::string json(const ScalarInfo& s) {
  bool complex = s.type == ACL_COMPLEX64 || s.type == ACL_COMPLEX128;
  std::string value = s.type == ACL_UINT64 ? std::to_string(static_cast<uint64_t>(s.integer))
                      : s.integral()       ? std::to_string(s.integer)
                                           : number(s.real);
  return text(R"({"dtype": %d, "value": [%s%s]})", s.type, value.c_str(),
              complex ? (", " + number(s.imaginary)).c_str() : "");
}

// One argument in JSON.
struct Shown {
  const std::vector<Tensor>& tensors;
  std::string operator()(size_t slot) const { return json(tensors[slot]); }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const char* value) const { return value == nullptr ? "null" : quoted(value); }
  std::string operator()(const std::shared_ptr<ScalarInfo>& value) const { return value ? json(*value) : "null"; }
  std::string operator()(const std::shared_ptr<Dims>& value) const { return value ? list(*value) : "null"; }
  std::string operator()(const std::shared_ptr<std::vector<bool>>& value) const {
    if (!value) return "null";
    std::string out;
    for (bool flag : *value) out += (out.empty() ? "" : ", ") + (*this)(flag);
    return "[" + out + "]";
  }
};

}  // namespace

bool Op::ask_checks(const char* api) const {
  aclemuChecks ask = checks;
  if (ask == nullptr) {
    throw Error{ACLNN_ERR_INNER, std::string(api) +
                                     " comes from outside the emulated CANN, and this process has no checks for it: "
                                     "call it through the aclnn backend"};
  }
  std::string arguments;
  for (const Argument& each : described_)
    arguments += (arguments.empty() ? "" : ", ") + quoted(each.name) + ": " + std::visit(Shown{tensors_}, each.value);
  std::string call = R"({"op": )" + quoted(api) + R"(, "soc": )" + quoted(soc().soc) + R"(, "arguments": {)" +
                     arguments + "}}";
  char message[kMessageRoom] = "";
  int32_t runs = 1, code = ask(call.c_str(), message, sizeof message, &runs);
  if (code != ACLNN_SUCCESS) throw Error{code, message};
  return runs != 0;
}

}  // namespace emu

EMU_C void aclemuSetChecks(aclemuChecks checks) { emu::checks = checks; }
