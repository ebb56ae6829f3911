"""No right kernel breaks the strict bound: not the declared orders, on any SoC, and not PyTorch in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of, violations
from elementwise_truth import ROWS, hard
from ordinary import one_of_each_kind
from truth import TYPES

from oracle import Call
from oracle.model.aclnn import PLATFORMS
from oracle.numerics.orders import strict
from oracle.numerics.orders.formula import is_elementwise
from oracle.operators import OPERATORS, compute, operator, reference, validate
from oracle.operators.definition.operands import formula_operands

SIZE = 3000
BY_SLUG = {op.slug: op for op in OPERATORS.values()}


def call(slug: str, soc: str, dtype: str, attributes: dict[str, Any], *, special: bool) -> Call:
    row, op = ROWS[slug], BY_SLUG[slug]
    arrays = hard(row, dtype, SIZE, [7, *slug.encode()])
    if special:
        for k, array in enumerate(arrays):
            array[k::17] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0], array[k::17].size).astype(array.dtype)
    return call_of(op.name, soc, **row.given(arrays), **attributes, **{op.output: dtype})


def summary(judged: Any, given: Call, actual: np.ndarray, where: np.ndarray) -> str:
    at = int(where[0])
    inputs = {n: float(v[at]) for n, v in given.inputs.items() if v is not None}
    return (
        f"{where.size} elements; first: {inputs} {given.attrs}: {float(actual[at])}, exactly {judged.value[at]}, "
        f"bound {judged.bound[at]}"
    )


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize("soc", ["ascend910", "ascend910b", "ascend950"])
@pytest.mark.parametrize("slug", one_of_each_kind(ROWS))
def test_declared_orders_stay_within_the_bound(slug: str, soc: str, special: bool) -> None:
    for dtype in TYPES:
        for attributes in ROWS[slug].attributes:
            given = call(slug, soc, dtype, attributes, special=special)
            if not validate(given).ok:
                continue
            judged = reference(given)
            op = operator(given.op)
            assert is_elementwise(op.computes)
            own = compute(given)
            wrong = violations(judged, own, saturates=PLATFORMS[soc].saturates)
            assert not wrong.size, f"{dtype}, the SoC's own: {summary(judged, given, own, wrong)}"
            operands = formula_operands(op, {**given.inputs, **given.attrs})
            for name, form in (op.computes.orders or {}).items():
                if name in ("tbe_a2", "tbe_910", "tbe") or getattr(form, "departs", False):
                    continue  # these belong to another SoC's kernel
                for flushing in dict.fromkeys((frozenset[str](), PLATFORMS[soc].flushes)):
                    with np.errstate(all="ignore"):
                        values = strict.kernel(op.computes, operands, strict.Device(name, np.float32, flushing))
                        actual = values.astype(TYPES[dtype])
                    wrong = violations(judged, actual)
                    assert not wrong.size, f"{dtype}, {name} {[*flushing]}: {summary(judged, given, actual, wrong)}"


# Known deviations of PyTorch in float32, and their inputs.
OTHERWISE: dict[str, Any] = {
    "gelu_backward": lambda t: t["self"] < -2,  # 1 + tanh loses the tail
    "gelu_backward_v2": lambda t: np.abs(t["self"]) > 2,  # 1 + erf, 1 + tanh in single steps
    "gelu": lambda t: t["self"] < -2,  # 1 + tanh loses the tail
    "gelu_v2": lambda t: t["x"] < -2,  # and 1 + erf
    "softplus_backward": lambda t: np.abs(t["gradOutput"]) > 1e25,  # gradOutput * e^b overflows
    "threshold_backward": lambda t: np.abs(t["self"]) < 2.0**-22,  # a small threshold is not zero
    "hardshrink_backward": lambda t: t["self"] == 0,  # a negative lambd is not zero
    "hardswish_backward": lambda t: np.abs(t["self"]) == 3,  # the edges belong to the outside
}


@pytest.mark.parametrize("slug", [s for s in ROWS if (BY_SLUG[s].aten and BY_SLUG[s].aten.call)])
def test_pytorch_in_float32_stays_within_the_bound(slug: str) -> None:
    torch = pytest.importorskip("torch")
    op = BY_SLUG[slug]
    assert op.aten is not None
    for attributes in ROWS[slug].attributes:
        given = call(slug, "ascend950", "float32", attributes, special=False)
        judged = reference(given)
        tensors = {n: None if v is None else torch.from_numpy(v) for n, v in given.inputs.items()}
        actual = op.aten.call(torch.ops.aten, {**tensors, **given.attrs}).numpy()
        wrong = violations(judged, actual)
        if slug in OTHERWISE:
            wrong = wrong[~OTHERWISE[slug](given.inputs)[wrong]]
        assert not wrong.size, summary(judged, given, actual, wrong)


@pytest.mark.parametrize("soc", ["ascend910", "ascend310p"])
@pytest.mark.parametrize("beta", [1.0, 1.1, -3.0])
def test_the_half_of_b_minus_its_magnitude_costs_swish_no_digits(soc: str, beta: float) -> None:
    """(b - |b|) / 2 is b or 0, for any rounding of b. Otherwise the exponential of its error was the bound."""
    x = (np.sign(beta) * np.logspace(0, 38, 200)).astype(np.float32)
    judged = reference(call_of("aclnnSwish", soc, self=x, betaOptional=beta))
    assert judged.unspecified is not None
    ordinary = np.abs(x) < 1e38
    assert not judged.unspecified[ordinary].any()
    assert (judged.bound[ordinary] < 32 * np.spacing(np.abs(x[ordinary]))).all()
    b = x[ordinary] * np.float32(beta)
    kernel = x[ordinary] * np.exp((b - abs(b)) / 2) / (np.exp(-abs(b)) + 1)
    assert (np.abs(kernel - judged.value[ordinary]) <= judged.bound[ordinary]).all()
