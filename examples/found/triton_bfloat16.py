"""Triton's interpreter: a cast to bfloat16 truncates where a GPU rounds.
pip install triton==3.9.0 torch (torch holds the tensors)

The interpreter takes the upper 16 bits of the float32; the compiled kernel rounds to nearest, ties to even.
"""

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def cast(source, target, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(target + at, tl.load(source + at).to(tl.bfloat16))


values = np.array([1.007, 1.0117, -2.9999, 3.3895e38], np.float32)
target = torch.zeros(len(values), dtype=torch.bfloat16)
cast[(1,)](torch.from_numpy(values), target, len(values))
found = target.view(torch.int16).numpy().view(np.uint16)
bits = values.view(np.uint32).astype(np.uint64)
nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
for value, one, other in zip(values, found, nearest, strict=True):
    shown = [np.array([b], np.uint32).__lshift__(16).astype(np.uint32).view(np.float32)[0] for b in (one, other)]
    print(f"{value:.9g}: Triton's interpreter {shown[0]:.9g}, nearest {shown[1]:.9g}")
wrong = int((found != nearest).sum())
print(f"Triton {triton.__version__}: {wrong} of {len(values)} casts are not to the nearest")
sys.exit(wrong > 0)
