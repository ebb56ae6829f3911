"""What an earlier run leaves to do: the cases that have no line (``--resume``), or those that failed
(``--rerun-failed``)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ..model.errors import OracleError
from ..record.reader import Record, read
from ..record.resume import differences
from ..record.types import RunHeader

NAMED = 5  # ids in a message


@dataclass(frozen=True)
class Earlier:
    """An earlier run. ``record`` is known to the process that owns the terminal; its workers know the ids alone.

    ``ended``: the cases that have a line, where this run goes on writing it. ``failed``: where this run repeats those
    alone, the cases that did not end well; else None.
    """

    ended: frozenset[str] = frozenset()
    failed: frozenset[str] | None = None
    record: Record | None = None

    @classmethod
    def to_resume(cls, path: str) -> Earlier:
        """Read the record of --resume."""
        record = read(Path(path).resolve())  # reports/latest.jsonl is a link
        return cls(ended=frozenset(case.id for case in record.cases if case.status != "notrun"), record=record)

    @classmethod
    def to_rerun(cls, path: str) -> Earlier:
        """Read the record of --rerun-failed."""
        record = read(path)
        return cls(failed=frozenset(case.id for case in record.cases if not case.ok), record=record)

    @property
    def continued(self) -> Record | None:
        """The record that this run goes on writing."""
        return self.record if self.failed is None else None

    @property
    def chosen(self) -> list[str]:
        """How the record of this run names the choice that the earlier one made: by the failed ids, which are the same
        wherever that record lies."""
        if self.failed is None:
            return []
        return ["--rerun-failed", hashlib.sha256("\n".join(sorted(self.failed)).encode()).hexdigest()[:12]]

    def check(self, header: RunHeader, planned: int) -> None:
        """Raise OracleError where this run cannot go on with the record: it says what differs."""
        if self.continued is None:
            return
        told = f"--resume {self.continued.path}: not the same run: "
        found = differences(self.continued.header, header)
        if found:
            raise OracleError(f"{told}{'; '.join(found)}")
        if planned + len(self.ended) != self.continued.header.planned:
            of = f"{self.continued.header.planned} cases were planned there, {len(self.ended)} of them ended; here"
            raise OracleError(f"{told}{of} {planned} are left")

    def left_behind(self, planned: Collection[str]) -> str:
        """Say which failed cases are not planned now ("" where all are)."""
        missing = sorted((self.failed or frozenset()).difference(planned))
        if not missing or self.record is None:
            return ""
        ids = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        failed = len(self.failed or ())
        return f"--rerun-failed {self.record.path}: {len(missing)} of its {failed} failed cases are not planned: {ids}"

    def told(self) -> list[str]:
        """Return what the terminal should say of the earlier run."""
        if self.record is None:
            return []
        if self.failed is None:
            return [f"resumed: {len(self.ended)} cases had ended before"]
        return [] if self.failed else [f"--rerun-failed {self.record.path}: none of its cases failed"]
