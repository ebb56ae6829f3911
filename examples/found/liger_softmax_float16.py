"""Liger-Kernel: the gradient of softmax in float16 is computed in float16.
pip install liger-kernel==0.8.5 triton==3.9.0 torch

The kernel multiplies and sums the float16 tensors directly. A float32 accumulator, as in its path for long rows, would
round only once. This runs on Triton's interpreter.
"""

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from liger_kernel.ops.softmax import _softmax_backward, calculate_settings

generator = np.random.default_rng(0)
columns = 1000
logits = generator.standard_normal((8, columns))
y = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).astype(np.float16)
g = generator.standard_normal((8, columns)).astype(np.float16) + np.float16(50)
block, warps = calculate_settings(columns)
found = _softmax_backward(torch.from_numpy(g), torch.from_numpy(y), block, warps, False).numpy().astype(np.float64)
products = g.astype(np.float64) * y
exact = products - products.sum(-1, keepdims=True) * y
once = exact.astype(np.float16)  # the result with a single rounding
error = np.abs(found - exact) / np.maximum(np.spacing(np.abs(once)), 2.0**-24).astype(np.float64)
worst = np.unravel_index(error.argmax(), error.shape)
print(
    f"element {tuple(map(int, worst))}: Liger {found[worst]:.6g}, exact {exact[worst]:.6g}, {error[worst]:.0f} ulp off"
)
print(f"Liger-Kernel: {(error > 2).sum()} of {error.size} elements are more than 2 ulp of float16 off")
sys.exit(bool((error > 2).any()))
