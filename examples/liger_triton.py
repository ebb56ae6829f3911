"""Liger-Kernel's softmax on Triton's interpreter: no GPU is needed.

pip install liger-kernel==0.8.5 triton==3.9.0 torch==2.13.0
PYTHONPATH=examples TRITON_INTERPRET=1 aclnn-oracle run --backend liger_triton:Liger --tier smoke -k first_look
"""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import torch
import triton
from liger_kernel.ops.softmax import _softmax_backward, calculate_settings

from oracle.adapter import Takes, store

# Triton's interpreter does not compute in bfloat16 (its documentation): it reads the bits as integers.
TAKES = Takes("Liger", ("aclnnSoftmaxBackward",), ("float16", "float32"), mixed=False, ranks=range(1, 9))


class Liger:
    name = "liger_triton"
    device = "Triton's interpreter"

    def __init__(self):
        self.versions = {"triton": triton.__version__, "torch": str(torch.__version__)}

    def unsupported(self, call):
        if reason := TAKES.reason(call):
            return reason
        y = call.inputs["output"]
        return None if call.attrs["dim"] % y.ndim == y.ndim - 1 else "Liger reduces the last axis only"

    def run(self, call):
        g, y = (torch.from_numpy(call.inputs[name]) for name in ("gradOutput", "output"))
        block, warps = calculate_settings(y.shape[-1])
        store(call, _softmax_backward(g, y, block, warps, y.shape[-1] > block).numpy())
