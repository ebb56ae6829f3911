"""Preparations for a run: the work that an earlier run left, and the parallel expansion of the catalogue."""

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
from ..reporting.language.translate import Text, _
from ..settings.settings import Settings
from ..system.cache import is_trusted, make_private, user_cache

# The work that an earlier run left: the cases without a line (``--resume``), or the failed cases (``--rerun-failed``).

NAMED = 5  # ids in a message


@dataclass(frozen=True)
class Earlier:
    """An earlier run. Only the process that owns the terminal has ``record``; its workers have the ids alone.

    ``ended``: the cases with a line, if this run continues the record. ``failed``: the cases that did not end well, if
    this run repeats only them; else None.
    """

    ended: frozenset[str] = frozenset()
    failed: frozenset[str] | None = None
    record: Record | None = None

    @classmethod
    def to_resume(cls, path: str) -> Earlier:
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
        """The record that this run continues."""
        return self.record if self.failed is None else None

    @property
    def chosen(self) -> list[str]:
        """The selection by the earlier run, as this run's record names it: a hash of the failed ids, which does not
        depend on the place of that record."""
        if self.failed is None:
            return []
        return ["--rerun-failed", hashlib.sha256("\n".join(sorted(self.failed)).encode()).hexdigest()[:12]]

    def may_be_of(self, slug: str) -> bool:
        """Return whether this run can have cases of the operator with this slug ("": of any operator)."""
        return self.failed is None or not slug or slug in self._slugs

    @cached_property
    def _slugs(self) -> set[str]:
        """The slugs at the beginning of the failed ids."""
        return {case_id.partition("/")[0] for case_id in self.failed or ()}

    def check(self, header: RunHeader, planned: int) -> None:
        """Raise OracleError, with the differences, if this run cannot continue the record."""
        if self.continued is None:
            return
        text = f"--resume {self.continued.path}: not the same run: "
        result = differences(self.continued.header, header)
        if result:
            raise OracleError(f"{text}{'; '.join(result)}")
        if planned + len(self.ended) != self.continued.header.planned:
            of = f"{self.continued.header.planned} cases were planned there, {len(self.ended)} of them ended; here"
            raise OracleError(f"{text}{of} {planned} are left")

    def missing_cases_text(self, planned: Collection[str]) -> str:
        """Return a sentence about failed cases that are not planned now; "" if all are planned."""
        missing = sorted((self.failed or frozenset()).difference(planned))
        if not missing or self.record is None:
            return ""
        ids = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        failed = len(self.failed or ())
        return f"--rerun-failed {self.record.path}: {len(missing)} of its {failed} failed cases are not planned: {ids}"

    def words(self, header: RunHeader) -> list[Text]:
        """Return the terminal's lines about the earlier run. ``header``: of this run."""
        if self.record is None:
            return []
        if self.failed is None:
            return [_("resumed: {n} cases had ended before", n=len(self.ended))]
        result = [] if self.failed else [_("none of its cases failed")]
        if self.record.missing:
            lost = self.record.missing
            result.append(_("the run stopped early: {n} of its cases never ran, and are not run here", n=lost))
        if self.record.header.backend != header.backend:
            names = {"earlier": self.record.header.backend, "backend": header.backend}
            result.append(_("its backend was {earlier}, this run is of {backend}", **names))
        return [_("--rerun-failed {record}: {sentence}", record=self.record.path, sentence=s) for s in result]


# The expansion of the built-in catalogue by several processes before a run, if this user's cache lacks it.
#
# Otherwise every worker of ``-n`` expands all of it, which takes 20 seconds.

MOST = 8  # processes, of 100 MiB each
FEW = 4  # files: below this number one process is as fast


def expand_ahead(settings: Settings, tell: Callable[[str], None]) -> None:
    """Expand and cache the cases of the built-in files that a run will read, if many are missing and the cache is
    usable. A fault in a file is reported when it is read. ``tell``: receives a line about a long expansion."""
    if settings.tier not in TIERS[1:] or settings.volume is not None:
        return  # smoke takes a second, and generated cases are not cached
    keep([f for f in files(default_dir()) if not settings.only or operator_of(f) in settings.only], settings.tier, tell)


def keep(read: Sequence[Path], tier: str | None, tell: Callable[[str], None]) -> None:
    """Expand and cache the cases of a tier (None: all tiers) of some files."""
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
        with suppress(Lost), workers(jobs) as pool:  # the run itself expands what a lost process did not
            for _ in pool.as_completed(_expand, [(file, tier) for file in largest_first]):
                pass


def _expand(work: tuple[Path, str | None]) -> None:
    file, tier = work
    with suppress(OracleError):
        load(file, tier=tier)
