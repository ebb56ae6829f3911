"""The built-in catalogue expanded before a run reads it, by several processes, where this user's cache lacks it.

Otherwise every worker of ``-n`` expands the whole of it, which takes a third of a minute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..catalogue.data.case import TIERS
from ..catalogue.loader import default_dir, files, is_kept, load, operator_of
from ..model.errors import OracleError
from ..parallel import Lost, workers
from ..settings.settings import Settings
from ..system.cache import is_trusted, make_private, user_cache

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
