"""Kernels with one mistake each that shows under a condition; a report has to find the condition itself."""

from __future__ import annotations

import numpy as np

from oracle.backends.cpu import Backend as Cpu

BLOCK = 64
LONG = 8192


class LosesTheTail(Cpu):
    """Softmax's gradient. On an axis longer than 64, its sum omits the rest after whole blocks of 64."""

    name = "loses-the-tail"

    def run(self, call):
        status = super().run(call)
        (out,) = call.outputs.values()
        if status.ok and isinstance(out, np.ndarray) and out.size and out.ndim:
            g, y = (np.asarray(call.inputs[name]).astype(np.float64) for name in ("gradOutput", "output"))
            axis = call.attrs["dim"]
            n = out.shape[axis]
            if n > BLOCK and n % BLOCK:
                whole = [slice(None)] * out.ndim
                whole[axis] = slice(0, n // BLOCK * BLOCK)
                with np.errstate(all="ignore"):
                    total = (g * y)[tuple(whole)].sum(axis=axis, keepdims=True)
                    right = np.asarray(call.inputs["output"]).dtype
                    out[...] = (y * (g - total)).astype(np.float32).astype(right).astype(out.dtype)
        return status


class MisplacesTheWeight(Cpu):
    """A loss's gradient. A broadcast weight lies along the wrong axes of a tensor of rank 3."""

    name = "misplaces-the-weight"

    def run(self, call):
        weight, main = call.inputs.get("weightOptional"), call.inputs["self"]
        if not isinstance(weight, np.ndarray) or not isinstance(main, np.ndarray):
            return super().run(call)
        if main.ndim != 3 or not weight.size < main.size:
            return super().run(call)
        wrong = np.resize(np.ascontiguousarray(weight).reshape(-1)[::-1], main.shape)
        call.inputs["weightOptional"] = wrong.astype(weight.dtype)
        call.specs.pop("weightOptional", None)
        try:
            return super().run(call)
        finally:
            call.inputs["weightOptional"] = weight


class IgnoresTheLastBlock(Cpu):
    """An operator that writes 0 for the last 16 results of each 16-bit row longer than 8,192."""

    name = "ignores-the-last-block"

    def run(self, call):
        status = super().run(call)
        (out,) = call.outputs.values()
        is_long = isinstance(out, np.ndarray) and out.ndim and out.shape[-1] > LONG
        if status.ok and is_long and next(iter(call.inputs.values())).dtype.itemsize == 2:
            out[..., -16:] = 0
        return status


class StopsAtInfinity(Cpu):
    """Writes one number everywhere if an operand has a value that is not finite."""

    name = "stops-at-infinity"

    def run(self, call):
        status = super().run(call)
        given = (np.asarray(value, np.float64) for value in call.inputs.values() if isinstance(value, np.ndarray))
        if not all(np.isfinite(value).all() for value in given):
            for output in call.outputs.values():
                output[...] = 1.5
        return status
