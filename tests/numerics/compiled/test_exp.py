"""NumPy's float64 exp stays within the 2 ULP (4 u) that docs/proof-details.md allows, on every SIMD level."""

from __future__ import annotations

import gmpy2
import numpy as np
import processes
import pytest

pytestmark = pytest.mark.slow

ALLOWED_ULP = 2.0

PROBE = """
import numpy as np
x = np.frombuffer(open({path!r}, "rb").read())
np.exp(x).tofile({path!r} + ".out")
"""


def arguments() -> np.ndarray:
    """Return x of both signs over every relevant binade, dense near 0, and the neighbours of multiples of ln 2 / 2."""
    r = np.random.default_rng(11)
    steps = np.arange(0, 2042) * (np.log(2) / 2)
    parts = [r.uniform(0, 1, 20000), r.uniform(0, 708, 20000), np.exp2(r.uniform(-60, 9.4, 20000)), steps,
             np.nextafter(steps, 0), np.nextafter(steps, 1e9)]  # fmt: skip
    magnitude = np.clip(np.concatenate(parts), 0, 708)
    return np.concatenate([magnitude, -magnitude])


@pytest.mark.parametrize("simd", [True, False], ids=["simd", "no-simd"])
def test_exp_is_within_its_bound(tmp_path, simd):
    x = arguments()
    path = str(tmp_path / "x")
    x.tofile(path)
    disabled = {} if simd else {"NPY_DISABLE_CPU_FEATURES": processes.simd_features()}
    done = processes.python("-c", PROBE.format(path=path), **disabled)
    assert done.returncode == 0, done.stderr
    z = np.fromfile(path + ".out")
    with gmpy2.context(precision=120):
        exact = [gmpy2.exp(gmpy2.mpfr(v)) for v in x.tolist()]
        pairs = zip(z.tolist(), exact, strict=True)
        worst = max(abs(gmpy2.mpfr(a) - e) / gmpy2.mpfr(float(np.spacing(float(e)))) for a, e in pairs)
    assert worst < ALLOWED_ULP
