"""How many numbers of its type lie between an output and its golden.

The bits of a float, read as an integer, count the numbers of its type in order: what most elements need is one
subtraction of such codes.
"""

from __future__ import annotations

import numpy as np

from ..model.call import Array
from ..model.dtypes import find
from ..numerics.floats.codes import code, codes, has_nan, sizes
from ..numerics.floats.extremes import highest, lowest, some
from ..operators.answers.reference import Reference
from ..record.types import ULPS

LARGEST = (0, 1, 2, 4, 16, 64, 256, 4096, 65536)  # distance in each bucket of ULPS but the last two
BLOCK = 1 << 15  # elements per pass: the scratch of one stays in cache


def ordered(array: Array) -> Array:
    """Return float bits as integers in the order of the numbers: neighbours differ by one, +0 and -0 are both 0."""
    flat = array.reshape(-1)
    magnitude = sizes(flat).astype(np.int64)
    return np.where(codes(flat) < 0, -magnitude, magnitude)


def ulp_distance(actual: Array, golden: Array) -> Array:
    """Return the number of representable values between two float arrays of one dtype, as uint64.

    Counted right across zero; infinity is the neighbour of the largest finite value. NaN against NaN is 0, NaN against
    a number the largest uint64.
    """
    a, g = ordered(np.ascontiguousarray(actual)), ordered(np.ascontiguousarray(golden))
    mag_a, mag_g = np.abs(a).astype(np.uint64), np.abs(g).astype(np.uint64)
    same = (a < 0) == (g < 0)
    distance = np.where(same, np.maximum(mag_a, mag_g) - np.minimum(mag_a, mag_g), mag_a + mag_g)
    nan_a, nan_g = np.isnan(actual).reshape(-1), np.isnan(golden).reshape(-1)
    distance[nan_a & nan_g] = 0
    distance[nan_a != nan_g] = np.iinfo(np.uint64).max
    return np.asarray(distance)


def histogram(distance: Array) -> dict[str, int]:
    """Count ULP distances in the buckets 0, 1, 2, 3-4, 5-16 ...; NaN against a number has its own."""
    edges = np.asarray([0, *(n + 1 for n in LARGEST)], np.uint64)
    nan = int(np.count_nonzero(distance == np.iinfo(np.uint64).max))
    counts = np.bincount(np.searchsorted(edges, distance, side="right") - 1, minlength=len(edges))
    *near, far = counts.tolist()
    found = dict(zip(ULPS, (*near, far - nan, nan), strict=True))
    return {name: n for name, n in found.items() if n or name in ULPS[:3]}


def spread(actual: Array, reference: Reference) -> dict[str, int]:
    """Return how many elements lie how many ULPs from the golden: ``histogram`` without what is 0; {} for no floats.

    Elements of one sign at most two apart are counted by their codes, all others measured.
    """
    actual, golden = real(actual), real(reference.golden)
    if not is_float(golden) or actual.dtype != golden.dtype or actual.shape != golden.shape:
        return {}
    a, g = actual.reshape(-1), golden.reshape(-1)
    if reference.unspecified is not None and some(reference.unspecified):
        judged = ~reference.unspecified.reshape(-1)
        a, g = a[judged], g[judged]
    near, far = [0, 0, 0], []
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        far.append(start + _count_near(a[part], g[part], near))
    where = far[0] if len(far) == 1 else np.concatenate(far or [np.empty(0, np.int64)])
    found = dict(zip("012", near, strict=True))
    if where.size:
        for name, n in histogram(ulp_distance(a[where], g[where])).items():
            found[name] = found.get(name, 0) + n
    return {name: n for name, n in found.items() if n}


def _count_near(a: Array, g: Array, near: list[int]) -> Array:
    """Add to ``near`` how many elements are 0, 1 and 2 apart; return the indices of those left to be measured."""
    if has_nan(a) or has_nan(g):
        return np.arange(a.size)
    apart = codes(a) - codes(g)  # of two signs: far from zero on either side, for no code is near the sign's bit
    np.abs(apart, out=apart)
    most = highest(apart)
    left = np.flatnonzero((apart > 2) | (apart < 0)) if most > 2 or lowest(apart) < 0 else np.empty(0, np.int64)
    one, two = (int(np.count_nonzero(apart == apart.dtype.type(n))) if most >= n else 0 for n in (1, 2))
    near[0] += a.size - left.size - one - two
    near[1] += one
    near[2] += two
    return left


def magnitude(golden: Array) -> float:
    """Return the largest finite magnitude of a float array, 0 where there is none."""
    size = sizes(golden.reshape(-1))
    infinity = code(golden.dtype, np.inf)
    largest = highest(size) if size.size else 0
    if largest >= infinity:
        largest = size.max(where=size < infinity, initial=0)
    return float(np.asarray(largest, size.dtype).view(golden.dtype))


def real(array: Array) -> Array:
    """Return the real part of a complex array; any other as it is."""
    return np.ascontiguousarray(array.real) if array.dtype.kind == "c" else array


def is_float(array: Array) -> bool:
    """Whether an array is of a floating-point type that aclnn has."""
    found = find(array.dtype)
    return found is not None and found.kind == "float"
