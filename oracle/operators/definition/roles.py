"""The role of an input tensor for its operator.

A role gives the tensor's shape for a shape of the main operand, and the output's axes along which its own axes run.
Code that cuts, broadcasts, shrinks or mutates a call uses the role, never a parameter's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Shape = tuple[int, ...]
Attributes = Mapping[str, Any]
Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class Role:
    """The role of an input tensor for its operator.

    ``shape(main, attributes)``: its shape for the shape of the main operand. ``axes(main, own, attributes)``: for each
    of its own axes, the axis of the output it runs along, or None. ``freedom``: the shapes allowed in addition to that
    one: ``none``, ``broadcast`` (any shape that broadcasts) or ``any``. ``holds``: ``values`` that enter the result and
    that the host casts to the operands' common dtype, ``classes`` (class indices), or ``nothing`` (no kernel reads the
    tensor).
    """

    name: str
    shape: Callable[[Shape, Attributes], Shape]
    axes: Callable[[Shape, Shape, Attributes], Axes]
    freedom: Literal["none", "broadcast", "any"] = "none"
    holds: Literal["values", "classes", "nothing"] = "values"


def _same(main: Shape, attributes: Attributes) -> Shape:
    return main


def _aligned(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    """Return right-aligned axes. An axis of length 1 runs along no axis if the output's axis is longer."""
    lead = len(main) - len(own)
    return tuple(lead + k if lead + k >= 0 and own[k] == main[lead + k] else None for k in range(len(own)))


def _nowhere(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    return (None,) * len(own)


MAIN = Role("main operand", _same, _aligned)
SAME = Role("like the main operand", _same, _aligned)
BROADCAST = Role("broadcast to the main operand", _same, _aligned, "broadcast")
MUTUAL = Role("broadcast with the main operand", _same, _aligned, "broadcast")  # the output has the common shape
ONE_VALUE = Role("one value", lambda main, attributes: (1,), _nowhere)
UNREAD = Role("never read", _same, _nowhere, "any", "nothing")

# The operands of a norm over the last axes, in addition to the main operand.


def _count_of_last(main: Shape, attributes: Attributes) -> int:
    """Return the number of last axes that are normalised: the number of lengths, or one without such an attribute."""
    lengths = attributes.get("lengths")
    return min(len(main), 1 if lengths is None else len(lengths))


def _last(main: Shape, attributes: Attributes) -> Shape:
    return main[len(main) - _count_of_last(main, attributes) :]


def _rows(main: Shape, attributes: Attributes) -> Shape:
    return main[: len(main) - _count_of_last(main, attributes)] or (1,)


def _leading(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    """Return left-aligned axes. An axis of length 1 runs along no axis if the output's axis is longer."""
    return tuple(k if k < len(main) and own[k] == main[k] else None for k in range(len(own)))


LAST = Role("one value per place in the last axes", _last, _aligned)
ROWS = Role("one value per row", _rows, _leading)

# The operands of a loss over classes. Its main operand is (N, C), (N, C, H, W) for images, or (C) for a single sample.


def class_axis(main: Shape) -> int:
    """Return the main operand's axis of classes."""
    return 1 if len(main) == 4 else len(main) - 1


def _per_class(main: Shape, attributes: Attributes) -> Shape:
    return (main[class_axis(main)],) if main else ()


PER_CLASS = Role("one value per class", _per_class, lambda main, own, a: (class_axis(main),) * len(own))


def _channels(main: Shape, attributes: Attributes) -> Shape:
    return main[1:2] or (1,)


def _channel_axes(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    """Map an axis of more than one element to axis 1, at any position."""
    return tuple(1 if n > 1 and len(main) > 1 else None for n in own)


PER_CHANNEL = Role("one value per channel, or one", _channels, _channel_axes)


def _samples(main: Shape, attributes: Attributes) -> Shape:
    axis = class_axis(main)
    return (*main[:axis], *main[axis + 1 :]) if len(main) > 1 else (1,)


def _sample_axes(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    if len(main) < 2 or own != _samples(main, attributes):
        return (None,) * len(own)
    axis = class_axis(main)
    return tuple(k for k in range(len(main)) if k != axis)


CLASS_INDEX = Role("class of each sample", _samples, _sample_axes, holds="classes")


def _gradients(main: Shape, attributes: Attributes) -> Shape:
    """Return the shape of the gradient. ``attributes`` are by role here: a role knows no names."""
    reduced = attributes.get("reduction") or attributes.get("choice", "none") != "none"
    return (1,) if reduced else _samples(main, attributes)


PER_SAMPLE = Role("one value per sample, or one under a reduction", _gradients, _sample_axes)


def _halved(main: Shape, attributes: Attributes) -> Shape:
    k = attributes.get("axis", 0) % max(1, len(main))
    return tuple(n // 2 if j == k else n for j, n in enumerate(main))


def _halved_axes(main: Shape, own: Shape, attributes: Attributes) -> Axes:
    k = attributes.get("axis", 0) % max(1, len(main))
    return tuple(None if j == k or j >= len(main) else j for j in range(len(own)))


HALF = Role("half of the main operand along the axis", _halved, _halved_axes)

# The operands of a norm over groups of channels, main operand (N, C, ...): one statistic per group.


def usual_groups(main: Shape) -> int:
    """Return a number of groups of several channels each: the smallest that divides the channels evenly, else one."""
    channels = main[1] if len(main) > 1 else 1
    return next((n for n in range(2, channels) if channels % n == 0), 1)


def _groups(main: Shape, attributes: Attributes) -> Shape:
    return (*main[:1], attributes.get("groups", usual_groups(main))) if len(main) > 1 else (1,)


# Groups run along the channels if each group has one channel.
PER_GROUP = Role("one value per group of channels", _groups, _leading)
