"""The data's laws: the same bytes everywhere, each generator what its name says, elementary functions good enough."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist

import numpy as np
import pytest

from oracle import OracleError
from oracle.catalogue import elementary
from oracle.catalogue.case import TensorPlan
from oracle.catalogue.generators import GENERATORS
from oracle.catalogue.inputs import make_buffer, make_values, store
from oracle.catalogue.streams import SCHEME, Stream
from oracle.dtypes import DTYPES, FLOATS, FORMATS

# generator and parameters -> first 16 hex digits of the sha256 of float16, bfloat16 and float32 data of shape (5, 67)
# (of int64 for class indices), little-endian. A change here is a change of every recorded result: raise SCHEME.
DIGESTS: dict[str, tuple[dict[str, object], str]] = {}
SHAPE = (5, 67)


def data(name: str, shape: tuple[int, ...] = SHAPE, dtype: str = "float32", seed: int = 0, **parameters: object):
    return make_values({"gen": name, **parameters}, shape, dtype, "some/case[x]", "p", seed)


def digest(name: str, parameters: dict[str, object]) -> str:
    total = hashlib.sha256()
    for dtype in ("int64",) if name in ("classes", "permutation") else FLOATS:
        values = data(name, dtype=dtype, **parameters)
        total.update(np.ascontiguousarray(values).view(f"<u{values.itemsize}").tobytes())
    return total.hexdigest()[:16]
