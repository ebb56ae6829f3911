"""What is talked about: calls and tensors, data types, platforms, aclnn statuses, errors."""
