// What an operator is made of: a first phase that checks its arguments and names a kernel, and the second that runs it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/entry.h"
#include "core/soc.h"
#include "core/stream.h"
#include "objects/objects.h"
#include "ops/view.h"

namespace emu {

// A tensor argument as a first phase sees it: a copy of aclCreateTensor's arguments, and its place in the executor.
struct Tensor : TensorInfo {
  const char* name = "";
  bool present = false;  // not a null pointer
  size_t slot = 0;
};

// A running kernel's access to its tensors.
class EMU_PUBLIC Run {
 public:
  Run(int device, std::vector<void*> addresses) : device_(device), addresses_(std::move(addresses)) {}
  // Throws Error 507015 for a view outside its storage, memory that is not alive, too small, unaligned or elsewhere.
  View open(const Tensor& tensor) const;

 private:
  const int device_;
  const std::vector<void*> addresses_;  // by slot
};

using Kernel = std::function<void(Run&)>;

// One argument of a first phase; a tensor by its slot.
struct Argument {
  const char* name;
  std::variant<size_t, int64_t, double, bool, const char*, std::shared_ptr<ScalarInfo>, std::shared_ptr<Dims>,
               std::shared_ptr<std::vector<bool>>>
      value;
};

// What a first phase collects.
class EMU_PUBLIC Op {
 public:
  Tensor input(const char* name, const aclTensor* handle);
  Tensor output(const char* name, const aclTensor* handle);
  int64_t attribute(const char* name, int64_t value);
  double attribute(const char* name, double value);
  bool attribute(const char* name, bool value);
  const char* attribute(const char* name, const char* value);                              // may be null
  std::shared_ptr<ScalarInfo> scalar(const char* name, const aclScalar* handle);           // throws 161001 for null
  std::shared_ptr<ScalarInfo> optional_scalar(const char* name, const aclScalar* handle);  // null for null
  Dims array(const char* name, const aclIntArray* handle);                        // empty for null
  std::vector<bool> array(const char* name, const aclBoolArray* handle);          // empty for null

  std::vector<Tensor> inputs(const char* name, const aclTensorList* list);  // throws 161001 for null

  // Asks the checks that the process has for operators from outside (aclemuSetChecks) about the arguments so far. Throws
  // what they refuse; false where the call succeeds without a kernel.
  bool ask_checks(const char* api) const;
  // Throws 161001 naming the first of them that is a null pointer.
  void require_present(std::initializer_list<Tensor> given) const;
  // The memory for contiguous copies that the operator makes of these (as CANN does in the workspace), and `more`.
  void workspace(std::initializer_list<Tensor> copied, size_t more = 0);
  void kernel(Kernel kernel) { kernel_ = std::move(kernel); }

 private:
  friend class FirstPhase;
  friend class Executor;
  Tensor add(const char* name, const aclTensor* handle, bool is_input);
  void note(const char* name, const std::string& value);

  std::vector<Argument> described_;
  std::vector<Tensor> tensors_;
  std::vector<const aclTensor*> handles_;
  std::vector<size_t> inputs_, outputs_;  // slots
  std::string arguments_;
  size_t workspace_ = 0;
  Kernel kernel_;  // none: an empty call that succeeds and writes nothing
};

// Throws 161002 unless the condition holds.
template <class... Values>
void check(bool condition, const char* format, Values... values) {
  if (!condition) throw Error{ACLNN_ERR_PARAM_INVALID, text(format, values...)};
}

class EMU_PUBLIC FirstPhase {
 public:
  explicit FirstPhase(const char* api) : api_(api), entry_((api_ + "GetWorkspaceSize").c_str()) {}
  // Runs `build`, which throws Error to refuse, and makes the executor.
  aclnnStatus operator()(uint64_t* workspaceSize, aclOpExecutor** executor, const std::function<void(Op&)>& build);

 private:
  const std::string api_;
  Entry entry_;
};

class EMU_PUBLIC SecondPhase {
 public:
  explicit SecondPhase(const char* api) : entry_(api) {}
  aclnnStatus operator()(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);

 private:
  Entry entry_;
};

}  // namespace emu

#define EMU_SECOND_PHASE(api)                                                                                   \
  EMU_C aclnnStatus api(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) { \
    static emu::SecondPhase phase(#api);                                                                        \
    return phase(workspace, workspaceSize, executor, stream);                                                   \
  }

// Both phases: EMU_FIRST_PHASE(aclnnX, const aclTensor* a, ...) { the body, about `op` } EMU_END(aclnnX)
#define EMU_FIRST_PHASE(api, ...)                                                                           \
  EMU_C aclnnStatus api##GetWorkspaceSize(__VA_ARGS__, uint64_t* workspaceSize, aclOpExecutor** executor) { \
    static emu::FirstPhase phase(#api);                                                                     \
    return phase(workspaceSize, executor, [&](emu::Op& op)
#define EMU_END(api) \
  );                 \
  }                  \
  EMU_SECOND_PHASE(api)
