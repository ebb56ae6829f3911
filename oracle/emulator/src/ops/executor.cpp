#include "ops/executor.h"

#include <csignal>
#include <cstring>

#include "core/context.h"
#include "core/settings.h"
#include "core/trace.h"

namespace emu {
namespace {

constexpr int kWorkspaceBytes = 0xFF;  // kernels clobber their workspace: data kept there by mistake turns to NaN

const LiveCount kCount("executors", [] { return executors().size(); });

}  // namespace

HandleTable<Executor>& executors() { return immortal<HandleTable<Executor>>(); }

std::shared_ptr<Executor> executor_of(const aclOpExecutor* handle) {
  auto executor = executors().find(handle);
  if (executor == nullptr)
    misused(ACLNN_ERR_INNER_NULLPTR, text("%p is no executor, or it was used: an executor serves one second phase",
                                          static_cast<const void*>(handle)));
  return executor;
}

Executor::Executor(std::string api, Op op) : api(std::move(api)), op(std::move(op)) {
  for (const Tensor& tensor : this->op.tensors_) addresses_.push_back(tensor.address);
}

void Executor::launch(void* workspace, uint64_t workspaceSize, Stream& stream, const Injection& injection) {
  for (size_t slot = 0; slot < op.handles_.size(); slot++) {
    if (op.handles_[slot] == nullptr || tensors().find(op.handles_[slot]) != nullptr) continue;
    misused(ACLNN_ERR_INNER_NULLPTR,
            text("%s: the tensor was destroyed between the phases", op.tensors_[slot].name));
  }
  if (workspaceSize < op.workspace_) {
    misuse(text("workspaceSize is %lu, %zu are needed", workspaceSize, op.workspace_));
    throw Error{ACLNN_ERR_PARAM_INVALID,
                text("workspaceSize is %lu, the first phase asked for %zu", workspaceSize, op.workspace_)};
  }
  // The task has the addresses of now: a repeatable executor may get others before it runs.
  auto task = [self = shared_from_this(), on = &stream, workspace, addresses = addresses_, injection] {
    self->perform(*on, workspace, addresses, injection);
  };
  stream.submit({api, false, std::move(task)});
}

void Executor::perform(Stream& stream, void* workspace, const std::vector<void*>& addresses,
                       const Injection& injection) const {
  int device = stream.context()->device;
  auto started = Clock::now();
  static const long latency_us = setting("ACLNN_EMULATOR_LATENCY_US", 0);
  stream.pause(latency_us);
  if (injection.action == "slow") stream.pause(1000 * injection.argument);
  if (injection.action == "hang") stream.hang();
  if (injection.action == "crash") raise(SIGSEGV);
  if (injection.action == "fault") throw Error{static_cast<int>(injection.argument), "injected fault"};
  if (op.workspace_ > 0)
    memset(kernel_address(device, workspace, op.workspace_, ACL_ERROR_RT_AICORE_EXCEPTION), kWorkspaceBytes,
           op.workspace_);
  Run run(device, addresses);
  if (op.kernel_ && injection.action != "stale") op.kernel_(run);
  if (op.kernel_ && !injection.action.empty()) spoil(run, op.tensors_, op.inputs_, op.outputs_, injection.action);
  if (tracing()) {
    long us = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started).count();
    trace_line(text("ran %s on device %d, stream %d in %ld us", api.c_str(), device, stream.id, us));
  }
}

void Executor::set_address(bool inputs, size_t index, void* address) {
  const std::vector<size_t>& slots = inputs ? op.inputs_ : op.outputs_;
  if (index < slots.size())
    addresses_[slots[index]] = address;
  else  // CANN says success, and nothing happens
    misuse(text("index %zu; %s has %zu", index, api.c_str(), slots.size()));
}

void Executor::set_any_address(const aclTensor* tensor, void* address) {
  for (size_t slot = 0; slot < op.handles_.size(); slot++) {
    if (op.handles_[slot] == tensor) addresses_[slot] = address;
  }
}

}  // namespace emu

EMU_C aclnnStatus aclnnInit(const char*) EMU_DOES()
EMU_C aclnnStatus aclnnFinalize() EMU_DOES()

// Null pointers of these functions are 561103 in CANN (opbase, acl_op_api.cpp).
static std::shared_ptr<emu::Executor> given(const aclOpExecutor* executor) {
  if (executor == nullptr) throw emu::Error{ACLNN_ERR_INNER_NULLPTR, "executor is a null pointer"};
  return emu::executor_of(executor);
}

static void given(const void* tensor, const char* name) {
  if (tensor == nullptr) throw emu::Error{ACLNN_ERR_INNER_NULLPTR, std::string(name) + " is a null pointer"};
}

EMU_C aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) EMU_DOES(given(executor)->repeatable = true)

EMU_C aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  EMU_ENTRY {
    given(executor);
    emu::executors().remove(executor);
  };
}

EMU_C aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  EMU_ENTRY {
    auto found = given(executor);
    given(tensor, "tensor");
    found->set_address(true, index, addr);
  };
}

EMU_C aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  EMU_ENTRY {
    auto found = given(executor);
    given(tensor, "tensor");
    found->set_address(false, index, addr);
  };
}

EMU_C aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* tensor, void* addr) {
  EMU_ENTRY {
    auto found = given(executor);
    given(tensor, "tensor");
    found->set_any_address(tensor, addr);
  };
}

static void set_member(const aclOpExecutor* executor, size_t index, const aclTensorList* tensors, void* addr) {
  auto found = given(executor);
  given(tensors, "tensors");
  auto list = emu::lists().find(tensors);
  if (list == nullptr) throw emu::Error{ACLNN_ERR_INNER_NULLPTR, "tensors is no list, or was destroyed"};
  if (index < list->members.size())
    found->set_any_address(static_cast<const aclTensor*>(list->members[index]), addr);
}

EMU_C aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t, const size_t relativeIndex,
                                               aclTensorList* tensors, void* addr)
EMU_DOES(set_member(executor, relativeIndex, tensors, addr))

EMU_C aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t, const size_t relativeIndex,
                                                aclTensorList* tensors, void* addr)
EMU_DOES(set_member(executor, relativeIndex, tensors, addr))

EMU_C aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t, const size_t relativeIndex,
                                          aclTensorList* tensors, void* addr)
EMU_DOES(set_member(executor, relativeIndex, tensors, addr))
