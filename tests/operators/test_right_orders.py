"""Orders of operations that a right kernel may use, on the cases that once flagged them."""

from __future__ import annotations

import numpy as np
import pytest
from calls import call_of

from oracle.case.judge import judge_values
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.model.aclnn import Status
from oracle.operators import reference, validate
from oracle.settings.settings import Settings


class WeightFirst:
    """The weight is divided by totalWeight before the multiplication by the gradient, in float32."""

    name = "weight-first"

    def run(self, call):
        status = validate(call)
        if status.ok and call.outputs["out"].size:
            g, t, w = (call.inputs[n] for n in ("gradOutput", "target", "weight"))
            out, total = call.outputs["out"], call.inputs["totalWeight"].reshape(())
            counts = np.flatnonzero(t != call.attrs["ignoreIndex"])
            with np.errstate(all="ignore"):
                values = -(w[t[counts]] / total * g.reshape(()))
            out[...] = 0
            out[counts, t[counts]] = values
        return status


class SquareFused:
    """The divisor is self - self * self, which is NaN at an infinity."""

    name = "square-fused"

    def run(self, call) -> Status:
        status = validate(call)
        if status.ok:
            g, x, y = (call.inputs[n].astype(np.float32) for n in ("gradOutput", "self", "target"))
            w = call.inputs["weightOptional"]
            with np.errstate(all="ignore"):
                divisor = np.maximum((x.astype(np.float64) * (1 - x.astype(np.float64))), np.float32(1e-12))
                divisor[np.isinf(x)] = np.nan
                result = g * (x - y) / divisor.astype(np.float32)
                result = result if w is None else result * w.astype(np.float32)
                if call.attrs["reduction"] == 1:
                    result = result / np.float32(x.size)
                call.outputs["out"][...] = result.astype(call.outputs["out"].dtype)
        return status


@pytest.mark.parametrize(
    ("device", "slug", "begins"),
    [
        (WeightFirst, "nll_loss_backward", "weights[float32-40x9-reduction=1-subnormal]"),
        (SquareFused, "binary_cross_entropy_backward", "special_spots[float32"),
        (SquareFused, "binary_cross_entropy_backward", "filled_with_specials["),
    ],
)
def test_a_right_order_is_not_flagged(device, slug, begins):
    cases = [c for c in load(default_dir() / f"{slug}.yaml") if c.id.startswith(f"{slug}/{begins}")]
    assert cases
    result = [run_case(case, device(), Settings()) for case in cases]
    assert [f"{line.id}: {line.reason}" for line in result if line.status != "pass"] == []


def test_a_product_that_underflows_loses_what_totalweight_makes_of_it():
    rng = np.random.default_rng(0)
    g, w = (np.ldexp(rng.uniform(1, 2, 1000), e).astype(np.float32) for e in (-80, -66))
    for exponent in (-60, -100, -140, 3):
        total = np.float32(np.ldexp(1.25, exponent))
        odd = []
        for gradient in g[:10]:
            inputs = {"gradOutput": gradient, "self": np.empty((1000, 1000), np.float32), "weight": w}
            inputs |= {"target": np.arange(1000), "totalWeight": total}
            known = reference(call_of("aclnnNLLLossBackward", **inputs, reduction=1, ignoreIndex=-100))
            device = -(gradient * w) / total  # in float32
            error = np.abs(device - np.diag(known.value))
            assert known.unspecified is not None
            odd.append(np.diag(known.unspecified))
            assert (error <= np.diag(known.bound))[~odd[-1]].all()
        assert not np.all(odd) or exponent == -140  # there a right kernel's reciprocal is infinite


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


N = np.float32(3)  # the mean's divisor: the elements of a call below
LOGITS = "aclnnBinaryCrossEntropyWithLogitsBackward"
LOGITS_OF = "gradOutput", "self", "target", "weightOptional", "posWeightOptional"
INPUTS = LOGITS_OF[:3]
# Orders of factors, with operands for which a product leaves float32's normal numbers, or is NaN.
FACTORS = {
    "factor first": (
        "aclnnMseLossBackward", dict(zip(INPUTS, (-1.003e-42, 1.8e19, 1e-7), strict=True)), {"reduction": 1},
        lambda g, x, t: (x - t) * (g * (2 / N)),
    ),
    "divided at the end": (
        "aclnnMseLossBackward", dict(zip(INPUTS, (0.9, 3e38, 1), strict=True)), {"reduction": 1},
        lambda g, x, t: (x - t) * 2 * g / N,
    ),
    "factor first, beside an overflow": (
        "aclnnKlDivBackward", dict(zip(INPUTS, (1e-45, 0, 1e5), strict=True)), {"reduction": 1, "logTarget": True},
        lambda g, x, t: np.exp(t) * (g * (-1 / N)),
    ),
    "gradient first": (
        "aclnnSwishBackward", {"gradOutput": 7.0285915e-9, "self": -84.231735}, {"betaOptional": 1.0},
        lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    ),
    "a difference": (
        LOGITS, dict(zip(LOGITS_OF, (1, 0.5, np.inf, None, None), strict=True)), {"reduction": 0},
        lambda g, x, t: (sigmoid(x) - t) * g,
    ),
    "gradient times weight first": (
        LOGITS, dict(zip(LOGITS_OF, (-8e-41, -1.5, 2.5e-9, 3e-16, -2e30), strict=True)), {"reduction": 0},
        lambda g, x, t, w, p: g * w * ((p * t + 1 - t) * sigmoid(x) - p * t),
    ),
}  # fmt: skip


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(("op", "given", "attributes", "kernel"), FACTORS.values(), ids=FACTORS)
def test_factors_may_be_multiplied_in_any_order(op, given, attributes, kernel, soc):
    inputs = {n: None if v is None else np.full(int(N), v, np.float32) for n, v in given.items()}
    with np.errstate(all="ignore"):
        actual = kernel(*(v for v in inputs.values() if v is not None))
    assert actual.dtype == np.float32
    known = reference(call_of(op, soc, **inputs, **attributes))
    _, layers = judge_values(known, actual, Settings(soc=soc))
    assert [layer.reason for layer in layers.values() if not layer.passed] == []
