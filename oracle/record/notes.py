"""What a device changed in the process it ran in, in sentences: for the end of a run and for its reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def told_of_changes(loading: Sequence[str], running: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence per change. ``loading``: by loading the backend; ``running``: by its calls, with the cases."""
    for change in loading:
        yield f"Loading the backend changed {change}; goldens and verdicts are computed without that."
    for change, ids in running.items():
        more = f" and {len(ids) - 1:,} more cases" if ids[1:] else ""
        yield f"The device changed {change} ({ids[0]}{more}); goldens and verdicts are computed without that."
