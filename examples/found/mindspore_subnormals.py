"""MindSpore on the CPU: whether subnormal numbers count depends on the thread that an element falls to.
pip install mindspore==2.10.0

The threads of MindSpore's pool flush them to 0, the calling thread does not; how a tensor is divided among threads it
finds out by timing the first launches of a kernel, so the same product is 0 here and right there.
"""

import sys

import mindspore as ms
import numpy as np

counts = {}
for size in (3, 8, 1000, 100_000):
    small, one = ms.Tensor(np.full(size, 1e-39, np.float32)), ms.Tensor(np.ones(size, np.float32))
    counts[size] = [int((ms.ops.mul(small, one).asnumpy() == 0).sum()) for _ in range(12)]
    print(f"{size} products 1e-39 * 1, twelve launches: {counts[size]} of them are 0")
zeros, products = sum(map(sum, counts.values())), 12 * sum(counts)
print(f"MindSpore {ms.__version__}: {zeros} of {products} are 0; exactly 1e-39, which float32 has")
sys.exit(zeros > 0)
