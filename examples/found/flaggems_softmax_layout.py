"""FlagGems: the gradient of softmax reads a non-contiguous `output` as if it were contiguous.
pip install --no-deps flag-gems==5.0.2 triton==3.9.0 sqlalchemy torch

`softmax_backward` makes `grad_output` contiguous and passes `output` on as it is; the kernel has no strides. This runs
on Triton's interpreter, without a GPU. The package needs a GPU at import, so only its softmax is imported.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
import types

os.environ |= {"TRITON_INTERPRET": "1", "GEMS_VENDOR": "nvidia"}

import numpy as np
import torch
from triton.runtime.autotuner import Autotuner

torch.cuda.device_count = lambda: 1
torch.cuda.get_device_name = lambda *_: "interpreter"
torch.cuda.get_device_capability = lambda *_: (8, 0)
torch.cuda.device = lambda *_: contextlib.nullcontext()
Autotuner.do_bench = lambda *_, **__: (0.0, 0.0, 0.0)  # no timing: the first configuration
(home,) = importlib.util.find_spec("flag_gems").submodule_search_locations
for name, folder in {"flag_gems": home, "flag_gems.ops": f"{home}/ops"}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
utils = importlib.import_module("flag_gems.utils")
utils.libentry = lambda: lambda kernel: kernel  # replaces the cache of compiled kernels; nothing is compiled here
softmax_backward = importlib.import_module("flag_gems.ops.softmax").softmax_backward

generator = np.random.default_rng(0)
logits, g = generator.standard_normal((2, 3, 4)).astype(np.float32)
y = torch.softmax(torch.from_numpy(logits), 0)
wrong = {}
for layout, output in {"contiguous": y, "transposed in memory": y.T.contiguous().T}.items():
    found = softmax_backward(torch.from_numpy(g), output, 0, torch.float32).numpy()
    products = g.astype(np.float64) * y.numpy()
    exact = products - products.sum(0) * y.numpy()
    wrong[layout] = int((abs(found - exact) > 1e-6).sum())
    print(f"output {layout}: {wrong[layout]} of {g.size} elements wrong")
    print(f"element (0, 0): FlagGems {found[0, 0]:.6g}, exact {exact[0, 0]:.6g}")
sys.exit(any(wrong.values()))
