"""Pictures of one run as small multiples: the spread of errors, what errors depend on, and where the time goes.

They are inline SVG in the page's own colours, so both themes and print are right. Shape and position repeat the meaning
of colours: bars beyond the bound are outlined, the backend's line is dashed. Every panel has its figures as text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ...model.classes import grouped
from ...record.codec import Number
from ...record.types import ULPS, CaseRecord, ErrorGrid
from ..clusters import dtype_rank, ranked
from ..language.translate import Text, _
from ..language.words import percent, seconds
from ..summary import Summary

PANELS = 120  # of one picture
WIDTH, HEIGHT, LEFT, BOTTOM = 180, 74, 4, 12
BINS = 10  # below the bound
EDGES = (1.0, 2.0, 10.0)
_SHAPE = re.compile(r"(?<=[\[-])\d+(?:x\d+)*(?=[-\]])")
ERROR = _("{cases} cases: median {median} of the bound, worst {worst}, {beyond} beyond the bound")
OWN = _("{cases} cases: median share {median}, worst {worst}, {beyond} beyond 100 %")
REDUCED = _("lengths {first} to {last}: worst error {worst} of the bound, at length {at}")
MAGNITUDE = _("magnitudes {first} to {last}: worst error {worst} of the bound, at {at}")
ERRORS = _(
    "One bar for every tenth of the bound, then to 2 times, to 10 times and beyond, and what is not finite; the worst "
    "element of each case; heights are logarithmic."
)
SHARES = _(
    "What is left of the error when the rounding no kernel can avoid is taken away: 0 is correctly rounded, 1 is all a "
    "right kernel may lose; heights are logarithmic."
)
ELEMENTS = _(
    "Elements of the cases whose elements the record describes: exact, one off, two, 3-4, "
    "5-16, 17-64 ... more than 65536, NaN; from two on outlined; heights are logarithmic."
)
GROWTH = _("Line: the worst case of each power of two; dashed: the median. The rule marks the bound.")


@dataclass(frozen=True)
class Panel:
    """One small picture of an operator and usually a dtype; ``caption``: its contents as text."""

    op: str
    dtype: str
    drawing: str
    caption: Text
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True)
class Picture:
    """One question, and a panel for each operator and dtype; ``legend``: marks with their meanings."""

    title: Text
    note: Text
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, Text]] = ()

    @property
    def shown(self) -> Sequence[Panel]:
        return self.panels[:PANELS]

    @property
    def omitted(self) -> Text | None:
        """A sentence on the panels that are not shown, if there are any."""
        if len(self.panels) <= PANELS:
            return None
        return _("The first {shown} of {count} are shown.", shown=PANELS, count=len(self.panels))


def pictures(summary: Summary) -> list[Picture]:
    """Return all pictures for which the record has the figures."""
    groups = _groups(summary)
    result = [
        _spread(groups, lambda case: case.budget_used, _("Error of the cases, in units of the bound"), ERRORS, ERROR),
        _spread(groups, lambda case: case.kernel_share, _("The kernel's own share of the error"), SHARES, OWN),
        _ulps(groups),
        _against(groups, "reduced", _("Error against the length of the reduced axis"), REDUCED),
        _against(groups, "magnitude", _("Error against the magnitude of the data"), MAGNITUDE),
        _time(summary),
    ]
    return [picture for picture in result if picture.panels]


Groups = dict[tuple[str, str], list[CaseRecord]]


def _groups(summary: Summary) -> Groups:
    """Return judged cases by operator and dtype, dtypes in the usual order."""
    judged = (case for case in summary.record.cases if case.budget_used is not None)
    result = grouped(judged, lambda case: (case.op, case.dtype))
    ops = list(dict.fromkeys(op for op, _dtype in result))
    return {key: result[key] for key in sorted(result, key=lambda key: (ops.index(key[0]), dtype_rank(key[1])))}


# the spread of errors -------------------------------------------------------------------------------------------------


def _spread(
    groups: Groups, figure: Callable[[CaseRecord], Number | None], title: Text, note: Text, caption: Text
) -> Picture:
    panels = []
    for (op, dtype), cases in groups.items():
        values = [ranked(value) for case in cases if (value := figure(case)) is not None]
        if values:
            counts = Counter(_bin(value) for value in values)
            bars = [counts[place] for place in range(BINS + len(EDGES) + 2)]
            figures = {"cases": len(values), "median": percent(median(values)), "worst": percent(max(values)),
                       "beyond": sum(value > 1 for value in values)}  # fmt: skip
            text = Text(caption.message, params=figures)
            panels.append(Panel(op, dtype, _bars(bars, BINS + 1, ("0", "1")), text))
    return Picture(title, note, panels)


def _bin(value: float) -> int:
    """Return the bin: 0 exact, 1 to 10 tenths of the bound, then up to 2 times, up to 10 times, beyond, not finite."""
    if value <= 0:
        return 0
    if value <= 1:
        return math.ceil(BINS * value - 1e-9)
    return BINS + len(EDGES) + 1 if math.isinf(value) else BINS + sum(value > edge for edge in EDGES)


def _ulps(groups: Groups) -> Picture:
    panels = []
    for (op, dtype), cases in groups.items():
        counts: Counter[str] = Counter()
        described = [ulps for case in cases if (ulps := case.ulps or (case.detail and case.detail.ulp_histogram))]
        for ulps in described:
            counts.update({name: int(n) for name, n in ulps.items()})
        if counts:
            names = [name for name in ULPS if name in ULPS[:5] or counts[name]]
            text = _("{elements} elements of {cases} cases: {list}", elements=counts.total(), cases=len(described),
                     list=", ".join(f"{name}: {counts[name]:,}" for name in names if counts[name]))  # fmt: skip
            panels.append(Panel(op, dtype, _bars([counts[name] for name in ULPS], 2, ("0", ">65536")), text))
    return Picture(_("Distance from the golden in ULP"), ELEMENTS, panels)


def _bars(counts: Sequence[int], over: int, ticks: tuple[str, str]) -> str:
    """Return bars with logarithmic heights; bars from ``over`` on are outlined, and a rule is drawn before them."""
    step = (WIDTH - 2 * LEFT) / len(counts)
    top = math.log1p(max(counts))
    ground = HEIGHT - BOTTOM
    drawn = [f'<path class="rule" d="M{LEFT + over * step:.1f} 2V{ground:g}"/>']
    for place, count in enumerate(counts):
        if count:
            height = max(2.0, (ground - 6) * math.log1p(count) / top)
            kind = "over" if place >= over else "in"
            drawn.append(f'<rect class="b-{kind}" x="{LEFT + place * step + 1:.1f}" y="{ground - height:.1f}" '
                         f'width="{step - 2:.1f}" height="{height:.1f}"/>')  # fmt: skip
    drawn.append(axis())
    drawn.append(_tick(LEFT, ticks[0]) + _tick(LEFT + over * step, ticks[1] if over > 2 else "", "middle"))
    drawn.append(_tick(WIDTH - LEFT, "∞" if over > 2 else ticks[1], "end"))
    return "".join(drawn)


def axis() -> str:
    """Return the line at the bottom of a panel."""
    return f'<path class="line" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - LEFT}"/>'


def mark(height: float) -> str:
    """Return a rule across a panel, at the bound."""
    return f'<path class="rule" d="M{LEFT} {height:.1f}H{WIDTH - LEFT}"/>'


def _tick(x: float, text: str, anchor: str = "start") -> str:
    if not text:
        return ""
    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<text x="{x:.1f}" y="{HEIGHT - 2}" text-anchor="{anchor}">{shown}</text>'


# what errors depend on ------------------------------------------------------------------------------------------------


def _against(groups: Groups, field: str, title: Text, caption: Text) -> Picture:
    """Return worst and median error by a figure of the case, in powers of two; only if the figure varies."""
    panels = []
    for (op, dtype), cases in groups.items():
        points = [(x, ranked(case.budget_used)) for case in cases
                  if (x := getattr(case, field)) and x > 0 and case.budget_used is not None]  # fmt: skip
        binned = _binned(points)
        if len(binned) < 3:
            continue
        scale = max(1.25, min(10.0, max(max(ys) for ys in binned.values())))
        worst = {x: max(ys) for x, ys in binned.items()}
        at = max(worst, key=lambda x: worst[x])
        first, last, where = (f"{2**x:,}" if 0 <= x < 40 else f"{2.0**x:.3g}" for x in (min(binned), max(binned), at))
        lines = [(worst, "worst"), ({x: median(ys) for x, ys in binned.items()}, "median")]
        drawing = mark(height_of(1.0, 0.0, scale)) + _lines(lines, 0.0, scale)
        drawing += _tick(LEFT, first) + _tick(WIDTH - LEFT, last, "end")
        figures = {"first": first, "last": last, "at": where, "worst": percent(worst[at])}
        panels.append(Panel(op, dtype, drawing, Text(caption.message, params=figures)))
    return Picture(title, GROWTH, panels)


def _binned(points: Iterable[tuple[float, float]]) -> dict[int, list[float]]:
    """Group values by the power of two of their figure, in order."""
    groups = grouped(points, lambda point: math.floor(math.log2(point[0])))
    return {power: [y for _x, y in groups[power]] for power in sorted(groups)}


def height_of(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return the height in a panel, from bottom to top, of a value between two others."""
    ground = HEIGHT - BOTTOM
    return ground - (ground - 6) * (min(max(value, low), high) - low) / (high - low)


def _lines(lines: Sequence[tuple[dict[int, float], str]], low: float, high: float) -> str:
    places = sorted({x for points, _kind in lines for x in points})
    span = max(1, places[-1] - places[0])
    drawn = []
    for points, kind in lines:
        xs = [LEFT + (WIDTH - 2 * LEFT) * (x - places[0]) / span for x in sorted(points)]
        at = zip(xs, [height_of(points[x], low, high) for x in sorted(points)], strict=True)
        drawn.append(f'<path class="line {kind}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in at) + '"/>')
    return axis() + "".join(drawn)


# where the time goes --------------------------------------------------------------------------------------------------


def elements(case: CaseRecord) -> int | None:
    """Return how many elements a case has: from the record, else from the shape in its id."""
    if count := case.elements or (case.detail.total if case.detail else None):
        return count
    match = _SHAPE.search(case.id)
    return math.prod(map(int, match[0].split("x"))) if match else None


def _time(summary: Summary) -> Picture:
    judged = (case for case in summary.record.cases if case.budget_used is not None)
    timed = [(case.op, size, case.golden_s, case.backend_s) for case in judged
             if (size := elements(case)) and case.golden_s and case.backend_s]  # fmt: skip
    panels = []
    for op, points in grouped(timed, lambda each: each[0]).items():
        golden = {x: median(ys) for x, ys in _binned((n, math.log10(g)) for _op, n, g, _b in points).items()}
        backend = {x: median(ys) for x, ys in _binned((n, math.log10(b)) for _op, n, _g, b in points).items()}
        if len(golden) < 3:
            continue
        low, high = min([*golden.values(), *backend.values()]), max([*golden.values(), *backend.values()])
        drawing = _lines([(golden, "worst"), (backend, "median")], low, max(high, low + 0.1))
        drawing += _tick(LEFT, f"{2 ** min(golden):,}") + _tick(WIDTH - LEFT, f"{2 ** max(golden):,}", "end")
        last = max(golden)
        taken, device = seconds(10 ** golden[last]), seconds(10 ** backend[last])
        text = _("{cases} cases; at {elements} elements: golden {golden}, backend {backend}", cases=len(points),
                 elements=f"{2**last:,}", golden=taken, backend=device)  # fmt: skip
        panels.append(Panel(op, "", drawing, text))
    legend = [('<path class="line worst" d="M0 5H20"/>', _("golden")),
              ('<path class="line median" d="M0 5H20"/>', _("backend"))]  # fmt: skip
    note = _("The median of each power of two of elements; both scales are logarithmic.")
    return Picture(_("Time against elements"), note, panels, legend)


@dataclass(frozen=True)
class MapPart:
    """A part of the error map with one level: 0 no error ... 4 far beyond the bound, 5 not finite."""

    start: int
    length: int
    level: int


def map_parts(values: Sequence[Number]) -> list[MapPart]:
    """Merge neighbouring slices of an error map that have the same level."""
    parts: list[MapPart] = []
    for position, value in enumerate(values):
        level = 5 if not math.isfinite(value) else sum(value > limit for limit in (0.0, 0.5, 1.0, 10.0))
        if parts and parts[-1].level == level:
            parts[-1] = MapPart(parts[-1].start, parts[-1].length + 1, level)
        else:
            parts.append(MapPart(position, 1, level))
    return parts


def grid_paths(grid: ErrorGrid) -> Iterator[tuple[int, str]]:
    """Yield one path per level, with a rectangle for each part of a row of blocks; level 0 is the background."""
    paths: dict[int, list[str]] = {}
    for row in range(grid.height):
        for part in map_parts(grid.values[row * grid.width : (row + 1) * grid.width]):
            if part.level:
                paths.setdefault(part.level, []).append(f"M{part.start} {row}h{part.length}v1h-{part.length}z")
    for level in sorted(paths):
        yield level, "".join(paths[level])


def bars(histogram: Mapping[str, Number]) -> Iterator[tuple[str, Number, float]]:
    """Yield buckets with their share of the longest bar: logarithmic, so that one error in a million is visible."""
    top = max((math.log1p(n) for n in histogram.values()), default=0.0)
    for name, n in histogram.items():
        yield name, n, (math.log1p(n) / top if top else 0.0)
