"""Before a run: what an earlier one leaves to do, and the catalogue expanded by several processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..catalogue.data.case import TIERS
from ..catalogue.loader import default_dir, files, is_kept, load, operator_of
from ..model.errors import OracleError
from ..parallel import Lost, workers
from ..record.reader import Record, differences, read
from ..record.types import RunHeader
from ..settings.settings import Settings
from ..system.cache import is_trusted, make_private, user_cache

# What an earlier run leaves to do: the cases that have no line (``--resume``), or those that failed
# (``--rerun-failed``).

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
        """Read the record of --rerun-failed. Raises OracleError for a run that stopped before any case failed."""
        record = read(path)
        failed = frozenset(case.id for case in record.cases if not case.ok)
        if record.stopped and not failed:
            raise OracleError(f"--rerun-failed {path}: {record.stopped}, and none failed; go on with it by --resume")
        return cls(failed=failed, record=record)

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

    def may_be_of(self, slug: str) -> bool:
        """Whether anything is to be run of the operator whose cases' ids begin with a slug ("": of any)."""
        return self.failed is None or not slug or slug in self._slugs

    @cached_property
    def _slugs(self) -> set[str]:
        """What the failed ids begin with."""
        return {case_id.partition("/")[0] for case_id in self.failed or ()}

    def check(self, header: RunHeader, planned: int) -> None:
        """Raise OracleError where this run cannot go on with the record: it says what differs."""
        if self.continued is None:
            return
        text = f"--resume {self.continued.path}: not the same run: "
        result = differences(self.continued.header, header)
        if result:
            raise OracleError(f"{text}{'; '.join(result)}")
        if planned + len(self.ended) != self.continued.header.planned:
            of = f"{self.continued.header.planned} cases were planned there, {len(self.ended)} of them ended; here"
            raise OracleError(f"{text}{of} {planned} are left")

    def left_behind(self, planned: Collection[str]) -> str:
        """Say which failed cases are not planned now ("" where all are)."""
        missing = sorted((self.failed or frozenset()).difference(planned))
        if not missing or self.record is None:
            return ""
        ids = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        failed = len(self.failed or ())
        return f"--rerun-failed {self.record.path}: {len(missing)} of its {failed} failed cases are not planned: {ids}"

    def words(self, header: RunHeader) -> list[str]:
        """Return what the terminal should say of the earlier run. ``header``: of this one."""
        if self.record is None:
            return []
        if self.failed is None:
            return [f"resumed: {len(self.ended)} cases had ended before"]
        result = [] if self.failed else ["none of its cases failed"]
        if self.record.missing:
            result.append(
                f"the run stopped early: {self.record.missing:,} of its cases never ran, and are not run here"
            )
        if self.record.header.backend != header.backend:
            result.append(f"its backend was {self.record.header.backend}, this run is of {header.backend}")
        return [f"--rerun-failed {self.record.path}: {sentence}" for sentence in result]


# The built-in catalogue expanded before a run reads it, by several processes, where this user's cache lacks it.
#
# Otherwise every worker of ``-n`` expands the whole of it, which takes a third of a minute.

MOST = 8  # processes, of 100 MiB each
FEW = 4  # files, which one process expands while others start


def expand_ahead(settings: Settings, tell: Callable[[str], None]) -> None:
    """Keep the cases of the built-in files that a run will read, if many are not kept yet and there is a place for
    them. A fault in a file is told when it is read. ``tell``: is told what takes so long."""
    if settings.tier not in TIERS[1:] or settings.volume is not None:
        return  # smoke takes a second, and cases by rule are not kept
    keep([f for f in files(default_dir()) if not settings.only or operator_of(f) in settings.only], settings.tier, tell)


def keep(read: Sequence[Path], tier: str | None, tell: Callable[[str], None]) -> None:
    """Keep the cases of a tier of some files, None for all tiers."""
    try:
        make_private(user_cache())
        if not is_trusted(user_cache()):
            return
        missing = [file for file in read if not is_kept(file, tier)]
    except (OSError, OracleError):
        return
    jobs = min(MOST, os.cpu_count() or 1, len(missing))
    if jobs > 1 and len(missing) >= FEW:
        tell(f"expanding {len(missing)} catalogue files, by {jobs} processes; later runs read the cases from the cache")
        largest_first = sorted(missing, key=lambda file: -file.stat().st_size)
        with suppress(Lost), workers(jobs) as pool:  # what a lost process has not kept is expanded by the run
            for _ in pool.as_done(_expand, [(file, tier) for file in largest_first]):
                pass


def _expand(work: tuple[Path, str | None]) -> None:
    file, tier = work
    with suppress(OracleError):
        load(file, tier=tier)
