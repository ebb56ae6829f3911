"""Expected failures: ``expectations/<backend>.yaml`` next to a catalogue.

    - id: "binary_cross_entropy_backward/clamp[float16-*]"     # or a list; only * and ? are wildcards, not [ ]
      status: fail                                             # fail, error, crash, timeout or skip
      reason: PyTorch computes in float16, whose 1e-12 is 0
      link: https://...                                        # optional
      soc: [ascend910b]                                        # optional, as is dtype: [float16]
      where: dim=0 reduced>64                                  # optional: only the cases that `run --where` chooses
      cann: ["8.5", "9.0.1"]                                   # optional: only releases that begin with one of these
      expires: "2026-12-31"                                    # optional: after this day the case fails again
      may: true                                                # optional: the bits depend on the machine; or some ids
      measured: 0 to 3 of 1024 elements outside the bound      # required with may

Entries are strict. If a case passes although an entry expects otherwise, it is ``xpass`` and fails the run. The
exceptions are an entry with ``may``, and a case that a layer outside the gate rejects. An entry that matches no case of
the catalogue, in any tier, is an error. A run of some catalogue files does not load other files to check entries that
may be about them. If several entries match a case, the first one applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from ..catalogue.data.case import Case
from ..catalogue.written.reading import Document, read, schema_error
from ..explain.where import Where
from ..model.aclnn import PLATFORMS
from ..model.dtypes import DTYPES
from ..model.errors import OracleError
from ..record.types import CaseRecord

_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
_PATTERN = {"type": "string", "minLength": 1}
_STATUS = {"enum": ["fail", "error", "crash", "timeout", "skip"]}
SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "id": {"oneOf": [_PATTERN, {**_NAMES, "items": _PATTERN}]},
            "status": {"if": {"type": "array"}, "then": {**_NAMES, "items": _STATUS}, "else": _STATUS},
            "reason": {"type": "string", "minLength": 1},
            "link": {"type": "string", "pattern": "^https?://"},
            "may": {"oneOf": [{"type": "boolean"}, {**_NAMES, "items": _PATTERN}]},
            "measured": {"type": "string", "minLength": 1},
            "soc": {**_NAMES, "items": {"enum": list(PLATFORMS)}},
            "dtype": {**_NAMES, "items": {"enum": list(DTYPES)}},
            "where": {"type": "string", "minLength": 1},
            "cann": {
                **_NAMES,
                "items": {"type": "string", "pattern": r"^\d+(\.\w+)*$", "description": "begin a version such as 8.5"},
            },
            "expires": {
                "type": "string",
                "pattern": r"^\d{4}-\d{2}-\d{2}$",
                "description": "be a date such as 2026-12-31",
            },
        },
        "required": ["id", "status", "reason"],
        "additionalProperties": False,
    },
}


def _begins(cann: str, release: str) -> bool:
    """Return whether a version ("8.5.0 (emulated)") belongs to a release ("8.5")."""
    return cann == release or (cann.startswith(release) and not cann[len(release)].isalnum())


@dataclass(frozen=True)
class Expectation:
    """One entry: cases with an id that matches ``pattern`` end in one of ``statuses``. ``reason`` says why."""

    pattern: str
    statuses: tuple[str, ...]
    reason: str
    where: str
    link: str = ""
    may: bool = False
    measured: str = ""
    soc: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    cann: tuple[str, ...] = ()
    expires: str = ""
    choice: str = ""

    @cached_property
    def _where(self) -> Where:
        return Where.of(self.choice)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)

    def names(self, case: Case) -> bool:
        """Return whether the entry's pattern, dtypes and ``where`` fit a case, on any SoC."""
        fits = self._regex.fullmatch(case.id) is not None and (not self.dtype or case.dtype in self.dtype)
        return fits and (not self.choice or self._where(case))

    def may_be_about(self, slug: str) -> bool:
        """Return whether the beginning of the pattern may match an id of an operator ("": an unknown operator)."""
        known, begins = re.split(r"[*?]", self.pattern)[0], f"{slug}/"
        return not slug or known.startswith(begins) or begins.startswith(known)

    def applies(self, case: Case, soc: str, cann: str = "") -> bool:
        """Return whether the entry applies to a case on a SoC and a CANN release ("" if the backend has none)."""
        released = not self.cann or any(_begins(cann, release) for release in self.cann)
        return (not self.soc or soc in self.soc) and released and self.names(case)

    @property
    def expired(self) -> bool:
        return bool(self.expires) and date.today().isoformat() > self.expires

    @property
    def explanation(self) -> str:
        """The reason with its link and its measurement, for a record line."""
        extra = [part for part in (f"measured: {self.measured}" if self.measured else "", self.link) if part]
        return self.reason + (f" ({'; '.join(extra)})" if extra else "")

    @property
    def explains(self) -> bool:
        """Whether a failure needs no other explanation than this entry's."""
        return self.statuses == ("fail",) and not self.expired

    def counted(self, record: CaseRecord) -> CaseRecord:
        """Return a case's record with the status that the entry gives it. An expired entry keeps the status and adds a
        remark to a failure."""
        if self.expired:
            text = f"{self.where}: expected until {self.expires}, no longer: {self.explanation}"
            return record if record.ok else record.counted_as(record.status, f"{record.reason}; {text}")
        status = " or ".join(self.statuses)
        if record.status in self.statuses:
            return record.counted_as("xfail", f"{self.explanation}: {record.reason}")
        if record.status == "pass":
            if self.may:
                return record.counted_as("pass", "")
            if any(not layer.passed for layer in record.verdicts.values()):
                return record  # it fails as expected, but in a layer outside the gate
            return record.counted_as("xpass", f"{self.where} expects {status}: {self.explanation}")
        if record.status == "skip":
            return record
        return record.counted_as(record.status, f"{record.reason} ({self.where} expects {status})")


@dataclass(frozen=True)
class Expectations:
    """All entries for one backend, in the file's order."""

    entries: Sequence[Expectation] = ()

    def of(self, case: Case, soc: str, cann: str = "") -> Expectation | None:
        """Return the first entry that applies to a case, or None."""
        return next((entry for entry in self.entries if entry.applies(case, soc, cann)), None)

    @property
    def ask_for_cann(self) -> bool:
        """Whether any entry is limited to releases of CANN."""
        return any(entry.cann for entry in self.entries)

    def not_about(self, slugs: Sequence[str]) -> Expectations:
        """Return the entries that apply to no case of the given operators."""
        return Expectations([e for e in self.entries if not any(e.may_be_about(slug) for slug in slugs)])

    def require_matches(self, cases: Iterable[Case]) -> None:
        """Raise OracleError for entries that match none of the catalogue's cases."""
        open_entries = list(self.entries)
        for case in cases:
            open_entries = [entry for entry in open_entries if not entry.names(case)]
            if not open_entries:
                return
        if open_entries:
            stale = "\n".join(f"{e.where}: id {e.pattern!r} matches no case of the catalogue" for e in open_entries)
            raise OracleError(f"{stale}\nA stale expectation hides the next failure: correct the pattern or delete it.")


def expectations_file(catalogue_dir: Path, backend: str) -> Path:
    """Return the path of a backend's expectations for the catalogue in a folder, whether or not it exists."""
    return catalogue_dir / "expectations" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', backend)}.yaml"


def load_expectations(path: Path) -> Expectations:
    """Read one file; an absent file has no entries. Raises OracleError with file and line."""
    if not path.exists():
        return Expectations()
    import jsonschema  # imported here: most runs expect no failure, and the import takes a tenth of their start

    document = read(path, empty=[])
    validator = jsonschema.Draft202012Validator(SCHEMA)
    if not isinstance(document.data, list):
        raise document.error("a file of expectations is a list of entries, each with id, status and reason", ())
    if problems := list(validator.iter_errors(document.data)):
        problems.sort(key=lambda problem: problem.validator == "required")  # a misspelt key is its own reason
        raise schema_error(document, problems[0])
    result = (_entries(document, i, entry) for i, entry in enumerate(document.data))
    return Expectations(tuple(chain.from_iterable(result)))


def _entries(document: Document, index: int, entry: dict[str, Any]) -> Iterator[Expectation]:
    """Yield an expectation for each id of an entry."""
    if entry.get("may") and "measured" not in entry:
        raise document.error("may: true needs measured: the results seen, and on which machines", (index, "may"))
    if "measured" in entry and not entry.get("may"):
        raise document.error("measured: belongs to may: true", (index, "measured"))
    patterns = [entry["id"]] if isinstance(entry["id"], str) else entry["id"]
    some = entry.get("may", False)
    for pattern in some if isinstance(some, list) else ():
        if pattern not in patterns:
            raise document.error(f"may: {pattern!r} is none of the entry's ids", (index, "may"))
    choice = entry.get("where", "")
    try:
        Where.of(choice)
    except OracleError as error:
        raise document.error(str(error).removeprefix("--"), (index, "where")) from None
    for number, pattern in enumerate(patterns):
        may = pattern in some if isinstance(some, list) else some
        yield Expectation(
            pattern=pattern,
            statuses=(entry["status"],) if isinstance(entry["status"], str) else tuple(entry["status"]),
            reason=entry["reason"],
            where=document.where((index, "id", number), (index, "id"), (index,)),
            link=entry.get("link", ""),
            may=may,
            measured=entry.get("measured", "") if may else "",
            soc=tuple(entry.get("soc", ())),
            dtype=tuple(entry.get("dtype", ())),
            cann=tuple(entry.get("cann", ())),
            expires=entry.get("expires", ""),
            choice=choice,
        )
