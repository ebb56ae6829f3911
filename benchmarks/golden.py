"""The speed of the goldens: ratios to common alternatives, by operator, dtype and size, and peak extra memory.

    python benchmarks/golden.py                      the table, about ten minutes
    python benchmarks/golden.py --sizes 22 --json out.json

Every ratio is peer time / golden time (above 1: the golden is faster). The time is processor time of one thread: the
median of interleaved runs, with a warm allocator. Peers:

- float64   torch float64 pipeline: .double() -> aten operator -> .to(dtype), the usual way to a good golden
- float32   torch's native operator in the dtype itself
- autograd  torch autograd of the forward operator in float32, cast back
- numpy     the vendor's formula in whole-array float32 NumPy (NLL: a Python loop over the rows)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from warm import restarted

if __name__ == "__main__":
    restarted()

import ml_dtypes
import numpy as np
import torch
from torch.nn import functional

import oracle
from oracle.numerics.compiled.engine import installed

NUMPY = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
TORCH = {name: getattr(torch, name) for name in NUMPY}
OPS = ("log_sigmoid", "softmax", "binary_cross_entropy", "nll_loss", "gelu", "silu", "sigmoid")
PEERS = ("float64", "float32", "autograd", "numpy")
# Floors against the float64 pipeline at 2^22 elements (float32, bfloat16, float16).
FLOORS = {
    "log_sigmoid": (1.5, 1.3, 1.2),
    "softmax": (0.4, 0.3, 0.2),
    "binary_cross_entropy": (0.8, 0.65, 0.5),
    "nll_loss": (3.5, 2.5, 3.5),  # mostly clearing the output, and 0.15 ms of a formula for any operator
}
CLASSES, ROW = 1024, 1024
Contest = tuple[Callable[[], Any], dict[str, Callable[[], Any]]]


def tensor(array: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32)).to(TORCH[dtype])


def log_sigmoid(size: int, dtype: str, r: np.random.Generator) -> Contest:
    g, x = r.normal(size=size).astype(NUMPY[dtype]), (4 * r.normal(size=size)).astype(NUMPY[dtype])
    tg, tx = tensor(g, dtype), tensor(x, dtype)

    def native(grad: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.log_sigmoid_backward(grad, self, torch.exp(-self.abs()))

    def vendor() -> Any:
        wide = x.astype(np.float32)
        return (g.astype(np.float32) * (1 / (1 + np.exp(wide)))).astype(x.dtype)

    return lambda: oracle.golden("aclnnLogSigmoidBackward", gradOutput=g, self=x, buffer=x), {
        "float64": lambda: native(tg.double(), tx.double()).to(tx.dtype),
        "float32": lambda: native(tg, tx),
        "autograd": lambda: autograd(functional.logsigmoid, tx, tg),
        "numpy": vendor,
    }


def softmax(size: int, dtype: str, r: np.random.Generator) -> Contest:
    shape = (max(1, size // ROW), min(size, ROW))
    logits = r.normal(size=shape)
    y = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    g, y = r.normal(size=shape).astype(NUMPY[dtype]), y.astype(NUMPY[dtype])
    tg, ty, tx = tensor(g, dtype), tensor(y, dtype), tensor(logits, dtype)
    native = torch.ops.aten._softmax_backward_data

    def vendor() -> Any:
        a, b = g.astype(np.float32), y.astype(np.float32)
        return (a * b - (a * b).sum(-1, keepdims=True) * b).astype(y.dtype)

    return lambda: oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=y, dim=-1), {
        "float64": lambda: native(tg.double(), ty.double(), -1, torch.float64).to(ty.dtype),
        "float32": lambda: native(tg, ty, -1, ty.dtype),
        "autograd": lambda: autograd(lambda t: functional.softmax(t, -1), tx, tg),
        "numpy": vendor,
    }


def binary_cross_entropy(size: int, dtype: str, r: np.random.Generator) -> Contest:
    g, x, y = r.normal(size=size), r.uniform(0.001, 0.999, size), r.uniform(size=size)
    g, x, y = (t.astype(NUMPY[dtype]) for t in (g, x, y))
    tg, tx, ty = (tensor(t, dtype) for t in (g, x, y))
    native = torch.ops.aten.binary_cross_entropy_backward

    def vendor() -> Any:
        a, b, c = (t.astype(np.float32) for t in (g, x, y))
        return (a * (b - c) / np.maximum((1 - b) * b, np.float32(1e-12))).astype(x.dtype)

    return lambda: oracle.golden("aclnnBinaryCrossEntropyBackward", gradOutput=g, self=x, target=y, reduction=0), {
        "float64": lambda: native(tg.double(), tx.double(), ty.double(), None, 0).to(tx.dtype),
        "float32": lambda: native(tg, tx, ty, None, 0),
        "autograd": lambda: autograd(
            lambda t: functional.binary_cross_entropy(t, ty.float(), reduction="none"), tx, tg
        ),
        "numpy": vendor,
    }


def nll_loss(size: int, dtype: str, r: np.random.Generator) -> Contest:
    rows, classes = max(1, size // CLASSES), min(size, CLASSES)
    g, w = r.normal(size=rows).astype(NUMPY[dtype]), r.uniform(0.5, 2, classes).astype(NUMPY[dtype])
    x, total = np.zeros((rows, classes), NUMPY[dtype]), np.array([3], NUMPY[dtype])
    target = r.integers(0, classes, rows)
    tg, tw, tx, tt = tensor(g, dtype), tensor(w, dtype), tensor(x, dtype), torch.from_numpy(target)
    one = tensor(total, dtype)
    native = torch.ops.aten.nll_loss_backward

    def vendor() -> Any:
        out = np.zeros(x.shape, np.float32)
        for row in range(rows):
            out[row, target[row]] = -g[row] * w[target[row]]
        return out

    def golden() -> Any:
        return oracle.golden(
            "aclnnNLLLossBackward", gradOutput=g, self=x, target=target, weight=w, reduction=0, ignoreIndex=-100,
            totalWeight=total,
        )  # fmt: skip

    def loss(t: torch.Tensor) -> torch.Tensor:
        return functional.nll_loss(t, tt, tw.float(), reduction="none")

    return golden, {
        "float64": lambda: native(tg.double(), tx.double(), tt, tw.double(), 0, -100, one.double()).to(tx.dtype),
        "float32": lambda: native(tg, tx, tt, tw, 0, -100, one),
        "autograd": lambda: autograd(loss, tx, tg),
        "numpy": vendor,
    }


def elementwise(op: str, second: str, native: Callable[..., torch.Tensor], inside: bool) -> Callable[..., Contest]:
    """Return the contest of an operator with a gradient and one operand; ``inside``: the operand is in (0, 1)."""

    def made(size: int, dtype: str, r: np.random.Generator) -> Contest:
        x = r.uniform(0.001, 0.999, size) if inside else 2 * r.normal(size=size)
        g, x = r.normal(size=size).astype(NUMPY[dtype]), x.astype(NUMPY[dtype])
        tg, tx = tensor(g, dtype), tensor(x, dtype)
        return lambda: oracle.golden(op, gradOutput=g, **{second: x}), {
            "float64": lambda: native(tg.double(), tx.double()).to(tx.dtype),
            "float32": lambda: native(tg, tx),
        }

    return made


gelu = elementwise("aclnnGeluBackward", "self", partial(torch.ops.aten.gelu_backward, approximate="tanh"), False)
silu = elementwise("aclnnSiluBackward", "self", torch.ops.aten.silu_backward, False)
sigmoid = elementwise("aclnnSigmoidBackward", "output", torch.ops.aten.sigmoid_backward, True)


def autograd(forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    leaf = x.detach().clone().float().requires_grad_()
    forward(leaf).backward(g.float())
    return leaf.grad.to(x.dtype)


def contest(golden: Callable[[], Any], peers: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return peer / golden for every peer that runs on this machine, medians of interleaved repeats."""
    times: dict[str, list[float]] = {"golden": []}
    for name, peer in list(peers.items()):
        try:
            peer()
        except (RuntimeError, NotImplementedError):  # "not implemented for 'Half'" on this machine's torch
            continue
        times[name] = []
    golden()
    for _ in range(repeats):
        for name, taken in times.items():
            run = golden if name == "golden" else peers[name]
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    base = times.pop("golden")
    ratios = {name: statistics.median(t / b for t, b in zip(taken, base, strict=True)) for name, taken in times.items()}
    return {**ratios, "seconds": statistics.median(base)}


def extra_memory(golden: Callable[[], Any]) -> float:
    """Return the peak MiB beyond inputs and output, as Python's allocator tracing measures it."""
    golden()
    tracemalloc.start()
    (out,) = golden().values()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - out.nbytes) / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,14,18,22,24", help="powers of two (default 10,14,18,22,24)")
    parser.add_argument("--dtypes", default=",".join(NUMPY))
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--engines", help="numpy, compiled or both (default: both where numba is installed)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    engines = (args.engines or ("numpy,compiled" if installed() else "numpy")).split(",")
    torch.set_num_threads(1)
    rows = []
    heads = "".join(f"{p:>10}" for p in PEERS)
    print(f"{'operator':22}{'dtype':10}{'size':>6} {'engine':9}{heads}{'ns/elem':>9}{'MiB':>7}")
    for op in args.ops.split(","):
        for dtype in args.dtypes.split(","):
            for power in map(int, args.sizes.split(",")):
                for engine in engines:
                    os.environ["ACLNN_ORACLE_ENGINE"] = engine
                    rows.append({"op": op, "dtype": dtype, "size": 1 << power, "engine": engine})
                    measure(rows[-1], max(args.repeats, 7) * (5 if power < 16 else 1))
                    print(line(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps({"numpy": np.__version__, "torch": torch.__version__, "rows": rows}, indent=1))
    return 1 if late(rows) else 0


def measure(row: dict[str, Any], repeats: int) -> None:
    golden, others = globals()[row["op"]](row["size"], row["dtype"], np.random.default_rng(0))
    if row["op"] == "nll_loss" and row["size"] > 1 << 18:
        others.pop("autograd")
    row.update(contest(golden, others, repeats))
    row["extra_mib"] = extra_memory(golden)


def line(row: dict[str, Any]) -> str:
    cells = "".join(f"{row[p]:10.2f}" if p in row else f"{'-':>10}" for p in PEERS)
    size, ns = f"2^{row['size'].bit_length() - 1}", row["seconds"] / row["size"] * 1e9
    return f"{row['op']:22}{row['dtype']:10}{size:>6} {row['engine']:9}{cells}{ns:9.2f}{row['extra_mib']:7.1f}"


def late(rows: list[dict[str, Any]]) -> bool:
    """Print every operator and dtype with the fastest engine below its floor; return whether there are any."""
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["size"] == 1 << 22:
            key = row["op"], row["dtype"]
            best[key] = max(best.get(key, 0.0), row["float64"])
    below = [(op, d, r) for (op, d), r in best.items() if op in FLOORS and r < FLOORS[op][list(NUMPY).index(d)]]
    for op, dtype, ratio in below:
        print(f"below its floor: {op} {dtype} {ratio:.2f} < {FLOORS[op][list(NUMPY).index(dtype)]}")
    return bool(below)


if __name__ == "__main__":
    sys.exit(main())
