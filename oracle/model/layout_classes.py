"""Classes of memory layouts: where in its storage a tensor begins, and how its elements follow each other.

A kernel loads blocks of 32 bytes: whether a tensor begins at one decides which way it takes, and an offset beyond 16
bits is lost where one is kept in so many. How rows follow each other decides the copy that is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

NO_OFFSET, BEYOND = "no offset", "an offset beyond 65535"
OFFSETS = (NO_OFFSET, *(f"offset {k}" for k in (1, 2, 3, 4, 5, 8, 16)), BEYOND)
IN_ORDER, STRIDED, PADDED, TRANSPOSED = "in order", "a strided last axis", "gaps between rows", "axes out of order"
OUTER, INNER, EVERYWHERE = "stride 0 outside", "stride 0 inside", "stride 0 everywhere"
OF_VECTORS = (IN_ORDER, STRIDED, EVERYWHERE)  # what one axis can be
OF_OUTPUTS = (IN_ORDER, STRIDED, PADDED, TRANSPOSED)  # in which no two elements share a place
STRIDES = (*OF_OUTPUTS, OUTER, INNER, EVERYWHERE)
OTHERWISE = "otherwise"
# How an operand lies beside the values that it goes into: in memory where it is whole, along which axes where not.
NOT_CONTIGUOUS, EXPANDED, OF_ONE = "not contiguous", "expanded", "of one element"
MIDDLE = "along all but a middle axis"
ALONG = ("along the last axis", "along all but the last", "along all but the first", MIDDLE)


def offset_class(offset: int) -> str:
    """Return the class of an offset in elements."""
    if offset > 65535:
        return BEYOND
    told = f"offset {offset}" if offset else NO_OFFSET
    return told if told in OFFSETS else OTHERWISE


def stride_class(shape: Sequence[int], strides: Sequence[int]) -> str:
    """Return the class of strides, in elements; axes of length 1 say nothing."""
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    still = [place for place, (_, stride) in enumerate(axes) if stride == 0]
    if still:
        alone = {0: OUTER, len(axes) - 1: INNER}.get(still[0], OTHERWISE) if len(still) == 1 else OTHERWISE
        return EVERYWHERE if len(still) == len(axes) else alone
    if any(one < two for (_, one), (_, two) in pairwise(axes)):
        return TRANSPOSED
    if axes and axes[-1][1] > 1:
        return STRIDED
    dense = 1
    for n, stride in reversed(axes):
        if stride != dense:
            return PADDED
        dense *= n
    return IN_ORDER


def order_class(shape: Sequence[int], strides: Sequence[int]) -> str:
    """Return whether a tensor lies in order, reads an element more than once, or neither."""
    if math.prod(shape) > 1 and any(stride == 0 for n, stride in zip(shape, strides, strict=True) if n > 1):
        return EXPANDED
    return IN_ORDER if stride_class(shape, strides) == IN_ORDER or not math.prod(shape) else NOT_CONTIGUOUS


def form_class(shape: Sequence[int], strides: Sequence[int], whole: Sequence[int]) -> str:
    """Return how an operand lies in memory, or along which of the axes of the values it has elements."""
    if tuple(shape) == tuple(whole):
        return order_class(shape, strides)
    aligned = (1,) * (len(whole) - len(shape)) + tuple(shape)
    lost = {axis for axis, n in enumerate(whole) if aligned[axis] < n}
    along = {axis for axis, n in enumerate(aligned) if n > 1}
    last = len(whole) - 1
    if not along:
        return OF_ONE
    if along == {last}:
        return ALONG[0]
    if lost == {last}:
        return ALONG[1]
    return ALONG[2] if lost == {0} else MIDDLE if len(lost) == 1 else OTHERWISE
