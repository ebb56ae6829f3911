"""What the forward partners compute: their slopes are the goldens of the gradients that belong to them."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Job, call
from partners import ACTIVATIONS, OTHERS, RANDOM, SELF, TARGET, Partner

import oracle
from oracle.operators import OPERATORS

STEP = np.float32(1 / 64)
WAYS = (1 - 2 * RANDOM.integers(0, 2, SELF.shape)).astype(np.float32)  # up or down, for each element of self


def output(partner: Partner) -> np.ndarray:
    """Room for the output: of self's shape, of half of it along dim, or of one number for a mean and a sum."""
    if partner.more.get("reduction", 0) != 0:
        return np.zeros((), np.float32)
    halves = [2 if axis == partner.more.get("dim", 2) % SELF.ndim and "dim" in partner.more else 1 for axis in range(2)]
    return np.zeros([size // half for size, half in zip(SELF.shape, halves, strict=True)], np.float32)


def gradient(partner: Partner, upstream: np.ndarray) -> np.ndarray:
    """The golden of the gradient to self; the upstream gradient and self come first among the operator's tensors."""
    operator = partner.gradient or f"{partner.name}Backward"
    given = partner.more if partner.given is None else partner.given
    inputs = [p.name for p in OPERATORS[operator].parameters if p.kind == "input"]
    values = {name: float(v) if isinstance(v, np.float32) else v for name, v in given.items()}
    if values.get("betaOptional", 0) is None:
        del values["betaOptional"]
    return next(iter(oracle.golden(operator, **{inputs[0]: upstream, inputs[1]: SELF}, **values).values()))


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_the_slope_of_every_partner_is_its_gradient(tree, soc):
    """Of the outputs' weighted sum, when every element of self goes up or down by a step."""
    partners = (*ACTIVATIONS, *OTHERS)
    jobs = [p.job(SELF + sign * STEP * WAYS, output(p), run=True) for p in partners for sign in (1, -1)]
    answers = iter(call(tree, jobs, soc))
    for partner, up, down in zip(partners, answers, answers, strict=True):
        assert (up.status, up.sync) == (0, 0), (partner, up)
        out = output(partner)
        upstream = np.asarray(np.resize(TARGET, out.shape), np.float32)
        rise = (up.after("out", out).astype(float) - down.after("out", out)) * upstream
        slope = (gradient(partner, upstream).astype(float) * WAYS).sum()
        assert rise.sum() / (2 * STEP) == pytest.approx(slope, rel=2e-3, abs=2e-3), partner


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_the_loss_of_images_weighs_the_picked_class(tree, reduction):
    images, weight = SELF.reshape(2, 3, 2, 2), TARGET[0, :3].copy()
    labels = RANDOM.integers(0, 3, (2, 2, 2))
    labels[0, 0, 0] = 7  # ignored
    picked = np.take_along_axis(images, np.where(labels == 7, 0, labels)[:, None], 1)[:, 0]
    weights = np.where(labels == 7, 0, weight[np.where(labels == 7, 0, labels)]).astype(float)
    losses = -picked * weights
    wanted = (losses, losses.sum() / weights.sum(), losses.sum())[reduction]
    params = {"self": images, "target": labels, "weight": weight, "reduction": reduction, "ignoreIndex": 7}
    params |= {"out": np.zeros(np.shape(wanted), np.float32), "totalWeight": np.zeros((), np.float32)}
    kinds = tuple((name, "int64" if isinstance(v, int) else "tensor") for name, v in params.items())
    (answer,) = call(tree, [Job("aclnnNLLLoss2d", params, parameters=kinds)])
    assert (answer.status, answer.sync) == (0, 0), answer
    np.testing.assert_allclose(answer.after("out", params["out"]), wanted, rtol=1e-6)
    if reduction:
        np.testing.assert_allclose(answer.after("totalWeight", params["totalWeight"]), weights.sum(), rtol=1e-6)
