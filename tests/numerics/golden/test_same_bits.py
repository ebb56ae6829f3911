"""The same bytes on every machine: SIMD level, block size, thread count and NumPy version have no effect.

GOLDENS was computed once and every run compares with it, so machines and NumPy versions are compared with each other.
The catalogue's own inputs and goldens change with the catalogue: their digest is compared between environments.
"""

from __future__ import annotations

import numpy as np
import processes
import pytest
from ordinary import in_full_alone

import oracle

GOLDENS = "25745612069fcf6b8166a6433cf68581d705df3d23dd8c295ab1592712edbb34"
SIMD = processes.simd_features()

SCRIPT = """
import hashlib, sys
from oracle.catalogue import default_dir, load, make_inputs, select
from oracle.operators import OPERATORS, golden

digest = hashlib.sha256()
part = int(sys.argv[1])  # one case in so many, and as small a part of the fixed data
slugs = [f"{name}_backward" for name in ("binary_cross_entropy", "log_sigmoid", "nll_loss", "sigmoid", "softmax")]
of_each_kind = [case for slug in slugs for case in load(default_dir() / f"{slug}.yaml", tier="smoke")]
for number, case in enumerate(select(of_each_kind, tier="smoke", soc="ascend910b")):
    if number % part or case.expected("ascend910b") != "ACLNN_SUCCESS":
        continue
    inputs, _ = make_inputs(case, seed=7)
    if any(array is not None and array.size == 0 for array in inputs.values()):
        continue
    for array in inputs.values():
        if array is not None:
            digest.update(array.tobytes())
    (output,) = case.outputs.items()
    out = golden(case.op, **inputs, **case.attrs, **{output[0]: output[1].dtype})
    digest.update(out[output[0]].tobytes())

print(digest.hexdigest())

import numpy as np
from ml_dtypes import bfloat16
digest = hashlib.sha256()
bits = np.random.Philox(key=5).random_raw(1 << 17).view(np.uint32)
with np.errstate(all="ignore"):
    for dtype in (np.float16, bfloat16, np.float32):
        g, x = (half.view(np.uint16 if np.dtype(dtype).itemsize == 2 else np.uint32).view(dtype)
                for half in np.array_split(bits, 2))
        g, x = (np.where(np.isfinite(t), t, np.ones((), dtype))[: (1 << 16) // part] for t in (g, x))
        for op, more in (
            ("aclnnLogSigmoidBackward", {"self": x, "buffer": x}),
            ("aclnnBinaryCrossEntropyBackward", {"self": x, "target": g, "reduction": 1}),
            ("aclnnSoftmaxBackward", {"output": x, "dim": 0}),
            ("aclnnSoftmaxBackward", {"output": np.abs(x).reshape(64, -1).T, "dim": 0}),
        ):
            grad = g if more.get("output", x).ndim == 1 else g.reshape(64, -1).T
            result = golden(op, gradOutput=grad, **more)
            for out in result.values():
                digest.update(np.where(np.isnan(out), np.zeros((), out.dtype), out).tobytes())
print(digest.hexdigest())

from oracle import Call
from oracle.operators import reference
digest = hashlib.sha256()
g, x = (half.view(np.float32)[:6000] for half in np.array_split(bits, 2))
with np.errstate(all="ignore"):
    x = np.where(np.abs(x) < 1e6, x, 1).astype(np.float32)
    columns = {"output": x.reshape(2000, 3)}
    for op, inputs, attrs, out in (
        ("aclnnBinaryCrossEntropyBackward", {"self": np.abs(x) % 1, "target": x % 1, "weightOptional": None},
         {"reduction": 1}, "out"),
        ("aclnnSoftmaxBackward", columns, {"dim": 0}, "out"),
        ("aclnnSoftmaxBackward", columns, {"dim": 1}, "out"),
        ("aclnnLogSigmoidBackward", {"self": x % 90, "buffer": x}, {}, "gradInput"),
        ("aclnnMishBackward", {"self": x % 90}, {}, "gradInput"),
    ):
        shape = inputs.get("output", x).shape
        inputs = {"gradOutput": np.where(np.abs(g) < 1e6, g, 1).astype(np.float32).reshape(shape), **inputs}
        known = reference(Call(op, "ascend910b", inputs, attrs, {out: np.empty(shape, np.float32)}))
        for array in (known.value, known.bound):
            digest.update(np.where(np.isnan(array), 0, array).tobytes())
print(digest.hexdigest())
"""


def digests(part: int = 1, **environment: str) -> tuple[str, str, str]:
    """Return three digests from a separate process. They are of the catalogue's smoke tier, of the fixed goldens (or of
    a part of them), and of the values and units of a verdict's errors."""
    done = processes.python("-c", SCRIPT, str(part), **environment)
    assert done.returncode == 0, done.stderr
    catalogue, goldens, measures = done.stdout.split()
    return catalogue, goldens, measures


@pytest.fixture(scope="module")
def here() -> tuple[str, str, str]:
    return digests()


def test_this_machine_computes_everybodys_goldens(here):
    assert here[1] == GOLDENS


@in_full_alone
@pytest.mark.skipif(not SIMD, reason="NumPy dispatches no SIMD feature on this machine: nothing to disable")
def test_without_simd(here):
    assert digests(NPY_DISABLE_CPU_FEATURES=SIMD) == here


@pytest.fixture(scope="module")
def sixteenth() -> tuple[str, str, str]:
    return digests(16)


@pytest.mark.parametrize(("block", "threads"), [pytest.param(64, 1, marks=in_full_alone), (1000, 3), (1 << 20, 2)])
def test_block_size_and_threads(sixteenth, block, threads):
    assert digests(16, ACLNN_ORACLE_BLOCK=str(block), ACLNN_ORACLE_THREADS=str(threads)) == sixteenth


@pytest.mark.parametrize("variable", ["ACLNN_ORACLE_BLOCK", "ACLNN_ORACLE_THREADS"])
@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_a_wrong_setting_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    x = np.ones(3, np.float32)
    with pytest.raises(oracle.OracleError, match=variable):
        oracle.golden("aclnnLogSigmoidBackward", gradOutput=x, self=x, buffer=x)
