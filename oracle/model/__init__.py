"""The basic types: calls and tensors, data types, platforms, aclnn statuses, errors."""
