#include "ops/executor.h"

#include <csignal>
#include <cstring>

#include "core/context.h"
#include "core/settings.h"
#include "core/trace.h"

namespace emu {
namespace {

constexpr int kWorkspaceBytes = 0xFF;  // kernels clobber their workspace: data kept there by mistake turns to NaN

struct Register {
  Register() {
    register_live_count("executors", [] { return executors().size(); });
  }
} registered;

}  // namespace

HandleTable<Executor>& executors() {
  static auto& table = *new HandleTable<Executor>;
  return table;
}

std::shared_ptr<Executor> executor_of(const aclOpExecutor* handle) {
  auto executor = executors().find(handle);
  if (executor == nullptr) {
    std::string what = text("%p is no executor, or it was used: an executor serves one second phase",
                            static_cast<const void*>(handle));
    misuse(what);
    throw Error{ACLNN_ERR_INNER_NULLPTR, what};
  }
  return executor;
}

Executor::Executor(std::string api, Op op) : api(std::move(api)), op(std::move(op)) {
  for (const Tensor& tensor : this->op.tensors_) addresses_.push_back(tensor.address);
}

void Executor::launch(void* workspace, uint64_t workspaceSize, Stream& stream, const Injection& injection) {
  for (size_t slot = 0; slot < op.handles_.size(); slot++) {
    if (op.handles_[slot] == nullptr || tensors().find(op.handles_[slot]) != nullptr) continue;
    std::string what = text("%s: the tensor was destroyed between the phases", op.tensors_[slot].name);
    misuse(what);
    throw Error{ACLNN_ERR_INNER_NULLPTR, what};
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
  if (index >= slots.size())
    throw Error{ACLNN_ERR_PARAM_INVALID, text("index %zu; %s has %zu", index, api.c_str(), slots.size())};
  addresses_[slots[index]] = address;
}

void Executor::set_any_address(const aclTensor* tensor, void* address) {
  for (size_t slot = 0; slot < op.handles_.size(); slot++) {
    if (op.handles_[slot] == tensor) addresses_[slot] = address;
  }
}

}  // namespace emu

EMU_C aclnnStatus aclnnInit(const char*) {
  static emu::Entry entry("aclnnInit");
  return entry([] {});
}

EMU_C aclnnStatus aclnnFinalize() {
  static emu::Entry entry("aclnnFinalize");
  return entry([] {});
}

EMU_C aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  static emu::Entry entry("aclSetAclOpExecutorRepeatable");
  return entry([&] {
    if (executor == nullptr) throw emu::Error{ACLNN_ERR_PARAM_NULLPTR, "executor is a null pointer"};
    emu::executor_of(executor)->repeatable = true;
  });
}

EMU_C aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  static emu::Entry entry("aclDestroyAclOpExecutor");
  return entry([&] {
    if (executor == nullptr) throw emu::Error{ACLNN_ERR_PARAM_NULLPTR, "executor is a null pointer"};
    emu::executor_of(executor);
    emu::executors().remove(executor);
  });
}

static emu::Executor& repeatable(aclOpExecutor* executor, std::shared_ptr<emu::Executor>& keep) {
  if (executor == nullptr) throw emu::Error{ACLNN_ERR_PARAM_NULLPTR, "executor is a null pointer"};
  keep = emu::executor_of(executor);
  if (!keep->repeatable) throw emu::Error{ACLNN_ERR_PARAM_INVALID, "the executor is not repeatable"};
  return *keep;
}

EMU_C aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor*, void* addr) {
  static emu::Entry entry("aclSetInputTensorAddr");
  return entry([&] {
    std::shared_ptr<emu::Executor> keep;
    repeatable(executor, keep).set_address(true, index, addr);
  });
}

EMU_C aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor*, void* addr) {
  static emu::Entry entry("aclSetOutputTensorAddr");
  return entry([&] {
    std::shared_ptr<emu::Executor> keep;
    repeatable(executor, keep).set_address(false, index, addr);
  });
}

EMU_C aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* tensor, void* addr) {
  static emu::Entry entry("aclSetTensorAddr");
  return entry([&] {
    std::shared_ptr<emu::Executor> keep;
    repeatable(executor, keep).set_any_address(tensor, addr);
  });
}
