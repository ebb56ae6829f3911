// An executor: everything between the two phases of a call.
#pragma once

#include "ops/op.h"

namespace emu {

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  Executor(std::string api, Op op);

  // Queues the kernel; throws Error. The injection is the fault that the second phase has to make.
  void launch(void* workspace, uint64_t workspaceSize, Stream& stream, const Injection& injection);
  void set_address(bool inputs, size_t index, void* address);
  void set_any_address(const aclTensor* tensor, void* address);

  const std::string api;
  const Op op;
  bool repeatable = false;

 private:
  void perform(Stream& stream, void* workspace, const std::vector<void*>& addresses, const Injection& injection) const;
  std::vector<void*> addresses_;  // by slot
};

HandleTable<Executor>& executors();
std::shared_ptr<Executor> executor_of(const aclOpExecutor* handle);  // throws Error 561103

// Spoils what a kernel wrote, as the injection says.
void spoil(const Run& run, const std::vector<Tensor>& tensors, const std::vector<size_t>& inputs,
           const std::vector<size_t>& outputs, const std::string& action);

}  // namespace emu
