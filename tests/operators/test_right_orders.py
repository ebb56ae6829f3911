"""Orders of operations that a right kernel may have, on the cases that once flagged them."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.catalogue import default_dir, load
from oracle.model.status import Status
from oracle.operators import validate
from oracle.operators.negative_log_likelihood import kernel_error
from oracle.runner import Settings, run_case


class WeightFirst:
    """The weight divided by totalWeight before the gradient is multiplied to it, in float32."""

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
    """self - self * self for the divisor, which is NaN at an infinity."""

    name = "square-fused"

    def run(self, call) -> Status:
        status = validate(call)
        if status.ok:
            g, x, y = (call.inputs[n].astype(np.float32) for n in ("gradOutput", "self", "target"))
            w = call.inputs["weightOptional"]
            with np.errstate(all="ignore"):
                divisor = np.maximum((x.astype(np.float64) * (1 - x.astype(np.float64))), np.float32(1e-12))
                divisor[np.isinf(x)] = np.nan
                found = g * (x - y) / divisor.astype(np.float32)
                found = found if w is None else found * w.astype(np.float32)
                if call.attrs["reduction"] == 1:
                    found = found / np.float32(x.size)
                call.outputs["out"][...] = found.astype(call.outputs["out"].dtype)
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
    found = [run_case(case, device(), Settings()) for case in cases]
    assert [f"{line.id}: {line.reason}" for line in found if line.status != "pass"] == []


def test_a_product_that_underflows_loses_what_totalweight_makes_of_it():
    rng = np.random.default_rng(0)
    g, w = (np.ldexp(rng.uniform(1, 2, 1000), e).astype(np.float32) for e in (-80, -66))
    for exponent in (-60, -100, -140, 3):
        total = np.float32(np.ldexp(1.25, exponent))
        exact = -(g.astype(np.float64) * w) / np.float64(total)
        device = -(g * w) / total  # in float32
        error, odd, _ = kernel_error(g.astype(np.float64), w.astype(np.float64), np.float64(total), exact)
        assert (np.abs(device - exact) <= error)[~odd].all()
        assert not odd.all()
