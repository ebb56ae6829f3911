"""aclnnMyBesselBackward: gradInput = gradOutput * J0(self), the Bessel function.

Sources: none; an example.
"""

import gmpy2
import numpy as np

from oracle.page import (
    MAIN,
    SAME,
    Given,
    Operator,
    dtype_in,
    ends_if_empty,
    float_types,
    max_rank,
    not_null,
    output,
    same_dtype,
    same_shape,
    tensor,
)


def bessel(a):
    """J0 by MPFR."""
    pairs = zip(a["gradOutput"].flat, a["self"].flat, strict=True)
    with gmpy2.context(gmpy2.get_context(), precision=100):
        result = [gmpy2.mpfr(g) * gmpy2.j0(gmpy2.mpfr(x)) for g, x in pairs]
    return np.array(result, object).reshape(a["self"].shape)


def checks(a, platform):
    yield not_null(a, "gradOutput", "self", "gradInput")
    yield dtype_in(a, "self", float_types(platform))
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "gradInput", "self")
    yield max_rank(a, "self")
    yield same_shape(a, "gradOutput", "self")
    yield same_shape(a, "gradInput", "self")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnMyBesselBackward",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("gradInput")),
    documented=("ascend950", "ascend910b"),
    checks=checks,
    empty=("self",),
    computes=Given(bessel),
)
