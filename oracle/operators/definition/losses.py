"""Functions that losses share: shapes of terms and results, values of empty calls, checks of class indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...model.aclnn import Platform
from ...model.dtypes import dtype_of
from .checks import Args, Check, broadcast_shape, check, together
from .operator import Arguments
from .parameters import MEAN, NONE, SUM
from .roles import Shape


def common_shape(*names: str) -> Callable[[Arguments], Shape]:
    """Return a function that gives the shape that some inputs broadcast to, which is the shape of a loss's terms. It
    ignores null pointers, and shapes that do not broadcast to the shapes before them."""

    def common(a: Arguments) -> Shape:
        shape: Shape = ()
        for name in names:
            if a.get(name) is not None:
                own = tuple(a[name].shape)
                shape = broadcast_shape(shape, own) or shape if own else shape
        return shape

    return common


def reduced_shape(*names: str) -> Callable[[Arguments], Shape]:
    """Return a function that gives a loss's shape: the shape of its terms without a reduction, else a scalar's."""
    common = common_shape(*names)
    return lambda a: common(a) if a["reduction"] == NONE else ()


def size_of(common: Callable[[Arguments], Shape]) -> Callable[[Arguments], int]:
    """Return a function that gives the number of elements of a shape."""
    return lambda a: math.prod(common(a))


def common_size(a: Arguments, names: Iterable[str]) -> int:
    """Return the number of elements of the shape that some tensors broadcast to."""
    return math.prod(common_shape(*names)(a))


def common_room(a: Arguments, names: Iterable[str]) -> Any:
    """Return an empty result for aten to fill, in the shape that some tensors broadcast to. The result of aten itself
    has the shape of self, and its resizing prints a warning at every call."""
    return a["self"].new_empty(common_shape(*names)(a))


def filled(a: Arguments) -> float | None:
    """Return the value that the host fills the output of an empty call with: NaN for a mean, 0 for a sum."""
    return {MEAN: math.nan, SUM: 0.0}.get(a["reduction"])


def loss_shape(a: Args, names: tuple[str, ...], out: str) -> Check:
    """Check that inputs broadcast together and that the output has their common shape, or rank 0 under a reduction."""
    common, given = together(a, names)
    title = f"{out} of the common shape, or of rank 0 under a reduction"
    if common is None:
        return check(title, f"{given}: these shapes do not broadcast")
    wanted = common if a["reduction"] == NONE else ()
    problem = f"{out} has shape {a[out].shape}; with {given} and reduction {a['reduction']} it must be {wanted}"
    return check(title, None if a[out].shape == wanted else problem)


def broadcasting(a: Args, *names: str) -> Check:
    """Check that BroadcastInferShape of some inputs gives a shape."""
    common, given = together(a, names)
    title = f"{' and '.join(names)} broadcast"
    return check(title, f"{given}: these shapes do not broadcast" if common is None else None)


def one_number(a: Arguments, out: str) -> str | None:
    """Return why a reduced loss does not fit its output, for an output whose shape no check looks at."""
    problem = f"{out} of shape {tuple(a[out].shape)} is to hold one number"
    return problem if a["reduction"] != NONE and math.prod(a[out].shape) != 1 else None


# ---- over class indices ----------------------------------------------------------------------------------------------


def widened(a: Arguments, platform: Platform) -> str:
    """Return the dtype that the host computes a loss in: self's; but float32 for float16 before ascend950."""
    name = dtype_of(a["self"].dtype).name
    return "float32" if name == "float16" and not platform.regbase else name


def has_rank(a: Args, name: str, allowed: Mapping[int, str]) -> Check:
    """Check that the rank of a tensor is allowed. ``allowed``: a name for a shape of each allowed rank."""
    spec = a[name]
    problem = f"{name} has rank {spec.rank}; it must be {' or '.join(allowed.values())}"
    return check(f"rank of {name}", None if spec.rank in allowed else problem)


def gradient_per_sample(a: Args, samples: Shape | None) -> Check:
    """Check that gradOutput has the shape ``samples`` without a reduction, otherwise one element and rank 0 or 1.

    ``samples`` is None for a single sample without an axis; gradOutput then has one element too.
    """
    grad, problem = a["gradOutput"], None
    if a["reduction"] == NONE and samples is not None:
        problem = None if grad.shape == samples else f"gradOutput has shape {grad.shape}; it must be {samples}"
    elif grad.rank > 1 or grad.size != 1:
        problem = f"gradOutput has shape {grad.shape}; with reduction {a['reduction']} it must be (1,) or ()"
    return check("shape of gradOutput", problem)
