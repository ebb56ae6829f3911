"""The emulator's kernels and the float32 ``kernel`` profile of the oracle: two writings of the same public kernels."""

from __future__ import annotations

import numpy as np
from ordinary import in_full_alone, one_of_each_kind

from oracle.backends import load
from oracle.case.prepare import Memory
from oracle.catalogue import select
from oracle.catalogue.loader import load_default
from oracle.operators import OPERATORS, compute, reference, written

# Only + - * / in a known order: no room for another bit. The others call exp, or sum in an order of their own.
EXACT = ("aclnnBinaryCrossEntropyBackward", "aclnnNLLLossBackward")


@in_full_alone
def test_on_some_of_the_catalogue_s_smoke_tier(emulator):
    device, chosen = load("aclnn"), one_of_each_kind(OPERATORS)
    judged, apart = 0, []
    try:
        for case in select(load_default(chosen, None, "smoke"), tier="smoke", soc="ascend910b")[::7]:
            call = Memory.make(case, soc="ascend910b", seed=0).call
            if not case.computes("ascend910b") or not (names := written(call)):
                continue
            known = [(compute(call, numerics="kernel", output=name), reference(call, name)) for name in names]
            assert device.run(call).ok
            judged += 1
            for result, (profile, wanted) in zip(map(call.outputs.get, names), known, strict=True):
                if case.op in EXACT:
                    assert np.array_equal(result, profile, equal_nan=True), case.id
                    continue
                # each lies within the bound of the true value, so they are within two of each other
                with np.errstate(all="ignore"):
                    distance = np.abs(result.astype(np.float64) - profile.astype(np.float64))
                same = (result == profile) | (np.isnan(result) & np.isnan(profile))
                specified = True if wanted.unspecified is None else ~wanted.unspecified
                if not (same | (distance <= 2 * wanted.bound) | ~np.asarray(specified)).all():
                    apart.append(case.id)
    finally:
        device.close()
    assert judged > 3 * len(chosen), "a seventh of the tier"
    assert not apart
