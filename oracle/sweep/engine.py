"""The engine of a sweep: rows in a scattered order, progress on disk, and the worst elements so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import gmpy2
import numpy as np

from ..model.aclnn import Status
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..operators import compute, reference
from ..parallel import Workers
from ..system.cache import replace
from .pairs import CODES, Pairs

ROWS = 32  # rows per call: 2^21 pairs
SCATTER = 40503  # odd, so every row comes once; rows near in time are far apart in value
WORST = 10
BEGINS = '{"identity":{"op":"'  # the beginning of a progress file, without blanks


class Device(Protocol):
    """The part of a backend's interface that a sweep needs."""

    def run(self, call: Call) -> Status | None: ...


@dataclass
class Progress:
    """The state of a sweep; written to disk so that it can continue after an interruption."""

    identity: dict[str, str]
    rows_done: int = 0
    pairs: int = 0
    wrong: int = 0
    settled_exactly: int = 0
    unspecified: int = 0
    budget_used: float = 0.0
    seconds: float = 0.0
    worst: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the file. Raise OracleError if that is impossible."""
        try:
            replace(path, json.dumps(asdict(self), indent=1))
        except OSError as error:
            why = error.strerror or error
            raise OracleError(f"{path}: progress cannot be written: {why}; name another --state") from None

    def add(self, part: Progress) -> None:
        """Add the results of the next rows."""
        for name in ("rows_done", "pairs", "wrong", "settled_exactly", "unspecified"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.budget_used = max(self.budget_used, part.budget_used)
        for element in part.worst:
            _keep(self, element)

    @classmethod
    def load(cls, path: Path, identity: dict[str, str]) -> Progress:
        """Return the progress in the file, to continue it. Raise OracleError if it belongs to another sweep."""
        text = _text(path)
        if text is None:
            return cls(identity)
        try:
            saved = cls(**json.loads(text))
            if not isinstance(saved.identity, dict):
                raise TypeError("its identity is no object")
        except (ValueError, TypeError) as error:
            what = f"damaged progress ({error})" if _is_progress(text) else "no progress of a sweep"
            raise OracleError(f"{path}: {what}; {_advice(text)}") from None
        if saved.identity != identity:
            pairs = ((key, saved.identity.get(key), value) for key, value in identity.items())
            differs = ", ".join(f"{key}: {old!r} there, {new!r} now" for key, old, new in pairs if old != new)
            raise OracleError(f"{path}: progress of another sweep ({differs}); {_advice(text)}")
        return saved

    @staticmethod
    def forget(path: Path) -> None:
        """Remove a sweep's progress file, also a damaged one. Raise OracleError for a file of another kind."""
        text = _text(path)
        if text is None:
            return
        if not _is_progress(text):
            raise OracleError(f"{path}: no progress of a sweep, so --restart keeps it; name another --state")
        try:
            path.unlink()
        except OSError as error:
            raise OracleError(f"{path}: cannot be removed: {error.strerror or error}; name another --state") from None


def _text(path: Path) -> str | None:
    """Return the content of a progress file; None if it does not exist. Raise OracleError if it cannot be read."""
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise OracleError(f"{path}: is no file, and progress needs one; name another --state")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise OracleError(f"{path}: cannot be read: {error.strerror or error}; name another --state") from None


def _advice(text: str) -> str:
    return "name another --state" + (" or give --restart" if _is_progress(text) else "")


def _is_progress(text: str) -> bool:
    """Return whether a text begins like the progress of a sweep, or is a prefix of that beginning (also empty)."""
    return BEGINS.startswith("".join(text.split())[: len(BEGINS)])


def visit(pairs: Callable[[], Pairs], device: Callable[[], Device | None], rows: range) -> Progress:
    """Visit some rows, and return the results of these rows alone. ``pairs`` and ``device`` make the objects of the
    process that visits them."""
    codes = (np.array(rows) * SCATTER % CODES).astype(np.int64)
    progress, asked = Progress({}, rows_done=len(rows), pairs=len(rows) * CODES), device()
    with np.errstate(all="ignore"):
        if asked is None:
            _prove(pairs(), codes, progress)
        else:
            _judge(pairs(), codes, asked, progress)
    return progress


def run_on(
    pool: Workers,
    pairs: Callable[[], Pairs],
    device: Callable[[], Device | None],
    progress: Progress,
    rows: int,
    stop_after: int,
    checkpoint: Callable[[Progress], None],
) -> Progress:
    """Visit the remaining pairs of the first ``rows`` rows, on the workers of a pool. The results and their order are
    the same for every pool. ``device``: None proves the golden itself.

    Stops early if ``stop_after`` elements are wrong. ``checkpoint`` is called after every block.
    """
    starts = range(progress.rows_done, rows, ROWS)
    parts = (range(start, min(start + ROWS, rows)) for start in starts if progress.wrong < stop_after)
    since = time.perf_counter()
    for result in pool.in_order(partial(visit, pairs, device), parts):
        progress.add(result)
        now = time.perf_counter()
        progress.seconds += now - since
        since = now
        checkpoint(progress)
        if progress.wrong >= stop_after:
            break
    return progress


def _prove(todo: Pairs, codes: Array, progress: Progress) -> None:
    """Check, for every pair, that the golden's midpoints enclose the exact result."""
    golden = compute(todo.call(codes), numerics="exact")
    low, high = todo.enclose(codes)
    below, above = midpoints(golden)
    settled = (below < low) & (high < above)
    for row, column in zip(*np.nonzero(~settled & ~np.isnan(low)), strict=True):
        expected = todo.expected(int(codes[row]), int(column))
        progress.settled_exactly += expected is not None
        if expected is not None and float(golden[row, column]) != expected:
            progress.wrong += 1
            element = _element(todo, int(codes[row]), int(column), expected, golden[row, column], float("inf"))
            _keep(progress, element)


def midpoints(values: Array) -> tuple[Array, Array]:
    """Return the midpoints below and above 16-bit values, exact in float64. A code's neighbours in magnitude are the
    codes next to it. Beyond the largest finite number is the format's next step."""
    with np.errstate(invalid="ignore"):
        magnitude = np.arange(1 << 15, dtype=np.uint16).view(values.dtype).astype(np.float64)
    infinity = int(np.flatnonzero(np.isinf(magnitude))[0])
    magnitude[infinity] = 2 * magnitude[infinity - 1] - magnitude[infinity - 2]
    up = np.full(1 << 15, np.nan)
    up[:infinity] = (magnitude[:infinity] + magnitude[1 : infinity + 1]) / 2
    down = np.full(1 << 15, np.nan)
    down[1 : infinity + 1] = up[:infinity]
    down[0] = -up[0]  # zero of either sign is nearest to all values within half the smallest number
    up[infinity] = np.inf
    codes = values.view(np.uint16)
    return np.concatenate([down, -up])[codes], np.concatenate([up, -down])[codes]


def _judge(todo: Pairs, codes: Array, device: Device, progress: Progress) -> None:
    """Check, for every pair, that the device is within the strict bound and agrees on NaN and infinities."""
    from ..verdict import compare

    call = todo.call(codes)
    expected = reference(call)
    status = device.run(call)
    if status is not None and not status.ok:
        raise OracleError(f"sweep: the device answered {status.name} ({status.reason}) to {todo.op}")
    actual = call.outputs[todo.output]
    result = compare(expected, actual)
    progress.unspecified += result.unspecified
    progress.budget_used = max(progress.budget_used, min(result.budget_used, 1e300))
    marks = [each.astype(bool) for each in (result.codes, result.strict_bad) if each is not None]
    if not marks:
        return
    error = np.abs(actual.astype(np.float64) - expected.value).reshape(-1) / expected.bound.reshape(-1)
    indices = np.flatnonzero(np.logical_or.reduce(marks))
    progress.wrong += indices.size
    for index in indices[np.argsort(-np.nan_to_num(error[indices], nan=np.inf), kind="stable")][:WORST]:
        row, column = divmod(int(index), CODES)
        golden = expected.golden[row, column]
        _keep(progress, _element(todo, int(codes[row]), column, float(golden), actual[row, column], error[index]))


def _keep(progress: Progress, element: dict[str, Any]) -> None:
    progress.worst.append(element)
    progress.worst.sort(key=lambda e: -float(e["share"]))
    del progress.worst[WORST:]


def _element(todo: Pairs, row: int, column: int, expected: float, actual: Any, share: float) -> dict[str, Any]:
    values = [repr(value) for value in todo.values(row, column).values()]
    return {
        "codes": [f"0x{code:04x}" for code in (row, column)][-len(values) :],
        "values": values,
        "expected": expected.hex(),
        "actual": float(actual).hex(),
        "share": repr(float(share)),
    }


def environment() -> dict[str, str]:
    """Return the versions of the libraries on which the proof depends, for the record."""
    return {"mpfr": str(gmpy2.mpfr_version()), "gmpy2": str(gmpy2.version()), "numpy": np.__version__}
