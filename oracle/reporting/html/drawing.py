"""Drawings of one case: where its errors are, and how far from the golden its elements lie."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...record.fields import Number
from ...record.types import ErrorGrid


@dataclass(frozen=True)
class MapPart:
    """A stretch of the error map with one level: 0 no error ... 4 far beyond the bound, 5 not finite."""

    start: int
    length: int
    level: int


def level_of(value: Number) -> int:
    """The level of an error in units of its bound."""
    return 5 if not math.isfinite(value) else sum(value > limit for limit in (0.0, 0.5, 1.0, 10.0))


def map_parts(values: Sequence[Number]) -> list[MapPart]:
    """Merge neighbouring slices of an error map that have the same level."""
    parts: list[MapPart] = []
    for position, level in enumerate(map(level_of, values)):
        if parts and parts[-1].level == level:
            parts[-1] = MapPart(parts[-1].start, parts[-1].length + 1, level)
        else:
            parts.append(MapPart(position, 1, level))
    return parts


def grid_paths(grid: ErrorGrid) -> Iterator[tuple[int, str]]:
    """One path per level, a rectangle for every stretch of blocks of a row that have it; level 0 is the ground."""
    paths: dict[int, list[str]] = {}
    for row in range(grid.height):
        for part in map_parts(grid.values[row * grid.width : (row + 1) * grid.width]):
            if part.level:
                paths.setdefault(part.level, []).append(f"M{part.start} {row}h{part.length}v1h-{part.length}z")
    for level in sorted(paths):
        yield level, "".join(paths[level])


def bars(histogram: Mapping[str, Number]) -> Iterator[tuple[str, Number, float]]:
    """Buckets with their share of the longest bar; logarithmic, for one wrong element in a million must show."""
    top = max((math.log1p(n) for n in histogram.values()), default=0.0)
    for name, n in histogram.items():
        yield name, n, (math.log1p(n) / top if top else 0.0)
