"""Pictures of a series of records: what each layer accepts and the worst error, a point for every record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...record.fields import Number
from ..language.translate import _
from ..language.words import NONE, percent
from .pictures import BOTTOM, HEIGHT, LEFT, WIDTH, Panel

STYLES = ("trend-0", "trend-1", "trend-2", "trend-3")  # solid, dashed, dotted, dash-dotted


def layer_panel(op: str, dtype: str, trend: Mapping[str, Sequence[float | None]]) -> Panel:
    """The share of cases that each layer accepts, from none at the ground to all at the top."""
    drawn = [_axis()]
    for style, values in zip(STYLES, trend.values(), strict=False):
        drawn.append(_line(values, style))
    told = ", ".join(f"{name} {percent(values[0])} → {percent(values[-1])}" for name, values in trend.items())
    return Panel(op, dtype, "".join(drawn), _("accepted: {list}", list=told))


def worst_panel(op: str, dtype: str, values: Sequence[Number | None]) -> Panel:
    """The worst error, logarithmic from a hundredth of the bound to a hundred times it; the rule marks the bound."""
    rule = f'<path class="rule" d="M{LEFT} {_y(0.5):.1f}H{WIDTH - LEFT}"/>'
    points = [None if v is None else _log(v) for v in values]
    first, last = (percent(values[place]) if values else NONE for place in (0, -1))
    told = _("worst error of the bound: {before} → {last}", before=first, last=last)
    return Panel(op, dtype, _axis() + rule + _line(points, STYLES[0]), told)


def _log(value: Number) -> float:
    """0 at a hundredth of the bound, 0.5 at it, 1 at a hundred times."""
    if not math.isfinite(value):
        return 1.0
    return 0.0 if value <= 0.01 else min(1.0, (math.log10(value) + 2) / 4)


def _axis() -> str:
    return f'<path class="line" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - LEFT}"/>'


def _y(share: float) -> float:
    ground = HEIGHT - BOTTOM
    return ground - (ground - 6) * share


def _line(points: Sequence[float | None], style: str) -> str:
    """A line over equally spaced records, broken where a record says nothing, with a dot for every record."""
    step = (WIDTH - 2 * LEFT) / max(1, len(points) - 1)
    path, dots, pen = "", "", "M"
    for place, point in enumerate(points):
        if point is None:
            pen = "M"
            continue
        x, y = LEFT + place * step, _y(point)
        path, pen = f"{path}{pen}{x:.1f} {y:.1f}", "L"
        dots += f'<rect class="dot" x="{x - 1.5:.1f}" y="{y - 1.5:.1f}" width="3" height="3"/>'
    return (f'<path class="{style}" d="{path}"/>' if path else "") + dots
