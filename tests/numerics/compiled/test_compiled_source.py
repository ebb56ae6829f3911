"""Formulas written as Python for numba: operations, and the ends of a value's interval."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import given, strategies as st

from oracle.numerics.expressions import ROUNDINGS, symbol
from oracle.numerics.programs import UFUNCS

compiled = pytest.importorskip(
    "oracle.numerics.compiled.loops", reason="the extra `fast` (numba) is not installed", exc_type=ImportError
)
from oracle.numerics.compiled import source  # noqa: E402


def test_every_operation_of_formulas_is_written_as_numpy_computes_it():
    """One function with all operations. The NumPy engine handles NaN: only minimum and maximum must propagate it."""
    names = [op for op in UFUNCS if op not in ("and", "or", "not", *ROUNDINGS)]
    arity = {op: UFUNCS[op].nin if isinstance(UFUNCS[op], np.ufunc) else 1 for op in names}
    written = [source.written(op, ["a", "b"][: arity[op]]) for op in names]
    made = dict(compiled.SCOPE)
    exec(f"def run(a, b):\n    return ({', '.join(f'1.0 * ({text})' for text in written)})", made)
    run = compiled.elements.njit(error_model="numpy")(made["run"])
    for a, b in [(0.5, 0.25), (-0.5, 0.5), (0.0, -0.0), (-0.0, 2.0), (3.0, 3.0), (1e-300, -7.5)]:
        for op, result in zip(names, run(a, b), strict=True):
            with np.errstate(all="ignore"):
                wanted = UFUNCS[op](*(a, b)[: arity[op]]) * 1.0
            rtol = compiled.EXP_RELATIVE if op == "exp" else 1e-14  # the others are from the C library, or round once
            np.testing.assert_allclose(result, wanted, rtol=rtol, err_msg=f"{op} of {a}, {b}")
    at = {op: k for k, op in enumerate(names)}
    for a, b in [(np.nan, 1.0), (1.0, np.nan)]:
        assert all(np.isnan(run(a, b)[at[op]]) for op in ("min", "max"))


@given(st.floats(2.0**-1000, 2.0**1000), st.booleans(), st.sampled_from([3, 5, 98, 164, 1000]))
def test_ends_that_are_shares_of_a_value_enclose_what_it_may_be(value, negative, units):
    v, slack = -value if negative else value, (units * 2.0**-53) * abs(symbol("v"))
    low, high, unsigned = source.ends(symbol("v"), slack)
    assert unsigned == "False"  # less than the value itself
    first, last = sorted(mpq(eval(end, {"v": v})) for end in (low, high))
    off = mpq(value) * (units - 2) / 2**53  # a slack adds 2u for the loss at the ends themselves
    assert first <= mpq(v) - off < mpq(v) + off <= last
    assert source.ends(symbol("v"), slack + 1) == ("v - slack", "v + slack", "(abs(v) < slack)")
