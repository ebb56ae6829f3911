#include "ops/op.h"

#include "core/context.h"
#include "core/trace.h"
#include "ops/executor.h"

namespace emu {
namespace {

constexpr uintptr_t kTensorAlignment = 32;  // of tensorData (documents)

[[noreturn]] void outside(const Tensor& tensor, const std::string& what) {
  throw Error{ACL_ERROR_RT_AICORE_EXCEPTION, std::string(tensor.name) + ": " + what};
}

// The lowest and highest element a view touches, relative to tensorData.
void extent(const Tensor& tensor, int64_t& low, int64_t& high) {
  low = high = tensor.offset;
  for (int64_t dim : tensor.shape) {
    if (dim < 0) outside(tensor, "the shape " + show(tensor.shape) + " has a negative dim");
  }
  for (size_t i = 0; i < tensor.rank(); i++) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
      outside(tensor, "the view's strides " + show(tensor.strides) + " overflow");
    }
  }
}

}  // namespace

View Run::open(const Tensor& tensor) const {
  View view{tensor.shape, tensor.strides, tensor.type, nullptr};
  if (!tensor.present || tensor.empty()) return view;
  int64_t low, high, size = static_cast<int64_t>(aclDataTypeSize(tensor.type)), storage = count_of(tensor.storage);
  extent(tensor, low, high);
  if (low < 0 || high >= storage) {
    outside(tensor, text("the view reaches elements [%ld, %ld] of a storage of %ld", low, high, storage));
  }
  if (size > 0 && high >= INT64_MAX / size)
    outside(tensor, "no memory has the view's " + std::to_string(high) + " elements");
  char* address = static_cast<char*>(addresses_[tensor.slot]);
  if (reinterpret_cast<uintptr_t>(address) % kTensorAlignment != 0)
    outside(tensor, text("tensorData %p is not 32-byte aligned", static_cast<void*>(address)));
  try {
    char* lowest = kernel_address(device_, address + low * size, static_cast<size_t>((high - low + 1) * size),
                                  ACL_ERROR_RT_AICORE_EXCEPTION);
    view.first = lowest + (tensor.offset - low) * size;
  } catch (const Error& error) {
    outside(tensor, error.message);
  }
  return view;
}

Tensor Op::add(const char* name, const aclTensor* handle, bool is_input) {
  Tensor tensor;
  tensor.name = name;
  if (handle != nullptr) {
    static_cast<TensorInfo&>(tensor) = *tensor_of(handle, name);
    tensor.present = true;
  }
  tensor.slot = tensors_.size();
  (is_input ? inputs_ : outputs_).push_back(tensor.slot);
  tensors_.push_back(tensor);
  handles_.push_back(handle);
  described_.push_back({name, tensor.slot});
  if (tracing()) note(name, tensor.present ? tensor.describe() : "null");
  return tensor;
}

Tensor Op::input(const char* name, const aclTensor* handle) { return add(name, handle, true); }
Tensor Op::output(const char* name, const aclTensor* handle) { return add(name, handle, false); }

int64_t Op::attribute(const char* name, int64_t value) {
  described_.push_back({name, value});
  if (tracing()) note(name, std::to_string(value));
  return value;
}

double Op::attribute(const char* name, double value) {
  described_.push_back({name, value});
  if (tracing()) note(name, text("%.9g", value));
  return value;
}

bool Op::attribute(const char* name, bool value) {
  described_.push_back({name, value});
  if (tracing()) note(name, value ? "true" : "false");
  return value;
}

const char* Op::attribute(const char* name, const char* value) {
  described_.push_back({name, value});
  if (tracing()) note(name, value == nullptr ? "null" : std::string("'") + value + "'");
  return value;
}

std::shared_ptr<ScalarInfo> Op::scalar(const char* name, const aclScalar* handle) {
  if (handle == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is a null pointer"};
  return optional_scalar(name, handle);
}

std::shared_ptr<ScalarInfo> Op::optional_scalar(const char* name, const aclScalar* handle) {
  auto value = handle == nullptr ? nullptr : scalar_of(handle, name);
  described_.push_back({name, value});
  if (tracing()) note(name, value == nullptr ? "null" : text("%s(%.9g)", type_name(value->type), value->real));
  return value;
}

Dims Op::array(const char* name, const aclIntArray* handle) {
  Dims values = handle == nullptr ? Dims() : array_of(handle, name)->values;
  described_.push_back({name, handle == nullptr ? std::shared_ptr<Dims>() : std::make_shared<Dims>(values)});
  if (tracing()) note(name, handle == nullptr ? "null" : show(values));
  return values;
}

std::vector<bool> Op::array(const char* name, const aclBoolArray* handle) {
  auto given = std::make_shared<std::vector<bool>>();
  if (handle != nullptr) {
    for (int64_t flag : array_of(handle, name)->values) given->push_back(flag != 0);
  }
  described_.push_back({name, handle == nullptr ? nullptr : given});
  if (tracing()) note(name, handle == nullptr ? "null" : show(Dims(given->begin(), given->end())));
  return *given;
}

std::vector<Tensor> Op::inputs(const char* name, const aclTensorList* list) {
  if (list == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, std::string(name) + " is a null pointer"};
  auto found = lists().find(list);
  if (found == nullptr) throw Error{ACLNN_ERR_INNER_NULLPTR, std::string(name) + " is no list, or was destroyed"};
  std::vector<Tensor> members;
  for (const void* member : found->members) members.push_back(input(name, static_cast<const aclTensor*>(member)));
  return members;
}

void Op::note(const char* name, const std::string& value) {
  arguments_ += std::string(arguments_.empty() ? "" : ", ") + name + "=" + value;
  trace_arguments(arguments_);
}

void Op::require_present(std::initializer_list<Tensor> given) const {
  for (const Tensor& tensor : given) {
    if (!tensor.present) throw Error{ACLNN_ERR_PARAM_NULLPTR, std::string(tensor.name) + " is a null pointer"};
  }
}

void Op::workspace(std::initializer_list<Tensor> copied, size_t more) {
  size_t bytes = more;
  for (const Tensor& tensor : copied) {
    if (tensor.present && !tensor.contiguous())
      bytes += static_cast<size_t>(tensor.count()) * aclDataTypeSize(tensor.type);
  }
  workspace_ = (bytes + 31) / 32 * 32;
}

aclnnStatus FirstPhase::operator()(uint64_t* workspaceSize, aclOpExecutor** executor,
                                   const std::function<void(Op&)>& build) {
  return entry_([&] {
    if (executor == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "executor is a null pointer"};
    if (workspaceSize == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "workspaceSize is a null pointer"};
    soc();
    Op op;
    build(op);
    *workspaceSize = op.workspace_;
    *executor = static_cast<aclOpExecutor*>(executors().add(std::make_shared<Executor>(api_, std::move(op))));
  });
}

aclnnStatus SecondPhase::operator()(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                    aclrtStream stream) {
  aclnnStatus status = entry_([&] {
    if (executor == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "executor is a null pointer"};
    auto found = executor_of(executor);
    if (found->api != entry_.name) {
      misuse(text("%s was given an executor of %s", entry_.name.c_str(), found->api.c_str()));
      throw Error{ACLNN_ERR_PARAM_INVALID, "the executor was made for " + found->api};
    }
    if (!found->repeatable) executors().remove(executor);  // single use, also on error
    if (workspace == nullptr && workspaceSize > 0) {
      throw Error{ACLNN_ERR_PARAM_NULLPTR, text("workspace is a null pointer, workspaceSize is %lu", workspaceSize)};
    }
    std::shared_ptr<Stream> on;
    try {
      on = stream_of(stream);
      on->context()->throw_if_failed();
    } catch (const Error& error) {
      throw Error{ACLNN_ERR_RUNTIME_ERROR, text("%d: %s", error.code, error.message.c_str())};
    }
    found->launch(workspace, workspaceSize, *on, Entry::current_injection());
  });
  if (Entry::current_injection().returns)
    executors().remove(executor);  // a second phase made to fail has used it too
  return status;
}

}  // namespace emu
