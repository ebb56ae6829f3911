"""One pytest run as this project sees it: the collected cases, the expectations, the record.

A worker of pytest-xdist only runs cases; the process that owns the terminal (alone, or as xdist's controller) plans,
records and sums up.
"""

from __future__ import annotations

import platform as machine
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..case.expectations import Expectation, Expectations, expectations_file, load_expectations
from ..case.judge import Outcome, record_of
from ..case.one_case import OF_STATE
from ..catalogue import digest, files, load, select
from ..catalogue.data.case import HUGE, Case
from ..catalogue.loader import default_dir, operator_of, slug_of
from ..catalogue.measure import cost
from ..catalogue.plan.statuses import demanded, with_gradients
from ..catalogue.written.reading import display
from ..explain.further_calls import ASKED, GroupExplorer
from ..explain.groups import groups
from ..explain.neighbours import AT_ONCE, CALLS, SECONDS
from ..explain.where import Where
from ..interop import is_foreign_catalogue, load as load_foreign
from ..model.aclnn import DOCUMENT, platform
from ..model.errors import OracleError
from ..place import Bench, ClusterRunner
from ..record.reader import Record
from ..record.types import SCHEMA, CaseRecord, Group, RunHeader, describe_changes, scores
from ..record.writer import RecordWriter
from ..reduce.script import script
from ..reduce.shrink import shrink_with
from ..reporting.language.translate import ENGLISH, Language, Phrase, _
from ..settings.options import Project
from ..settings.settings import OURS, Settings
from ..system.cache import untrusted
from ..system.process import version_of
from .preparation import Earlier
from .terminal import by_layer, further, summary

if TYPE_CHECKING:
    from ..interop.foreign import Loaded


OF_SCRIPTS = 0.4  # share of SECONDS for shrinking the smallest case of each of the largest groups


@dataclass
class Run:
    """The state of a run in one process. ``backend_name``: the loaded backend's own name."""

    settings: Settings
    record: Path | None = None
    command: Sequence[str] = ()
    language: Language = ENGLISH
    backend_name: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    chosen_by: Sequence[str] = ()  # pytest's own options that select cases
    earlier: Earlier | None = None  # the run to resume, or to repeat the failed cases of
    problems: list[str] = field(default_factory=list)  # of a device that could not be released

    def __post_init__(self) -> None:
        self.bench = Bench(self.settings)
        self._where = None if self.settings.where is None else Where.of(self.settings.where)
        self.recorder = RecordWriter(self.record)
        self.active = False  # True once its record is begun
        self.lost = ""  # why no further case can run
        self.remarks: list[str] = []  # lines for the end, for example about an earlier run
        self._cases: dict[tuple[Path, str | None], list[Case]] = {}
        self._planned: set[Path] = set()
        self._foreign: dict[Path, Loaded] = {}
        self._expectations: dict[Path, Expectations] = {}

    # collecting ------------------------------------------------------------------------------------------------------

    def cases(self, file: Path, *, every_tier: bool = False) -> list[Case]:
        """Return the selected cases of a catalogue file. Raises OracleError with file and line."""
        if self.settings.only and operator_of(file) not in ("", *self.settings.only):
            return []  # without expanding the file
        if self.earlier is not None and not self.settings.pairs and not self.earlier.may_be_of(slug_of(file)):
            return []
        where = None if self.settings.pairs else self._where  # its words can be about the gradient
        if where is not None and not where.may_be_of(operator_of(file), slug_of(file)):
            return []
        every_tier = every_tier or bool(self.settings.cases)
        whole = every_tier or self.settings.volume is not None or self._failed is not None
        tier = None if whole and self.settings.tier != HUGE else self.settings.tier
        if (file, tier) not in self._cases:
            foreign = is_foreign_catalogue(file)
            result = self.foreign(file).cases if foreign else load(file, self.settings.generated, tier)
            self._cases[file, tier] = result
        cases = select(self._cases[file, tier], tier=tier, soc=self.settings.soc)
        cases = [case for case in cases if not self.settings.only or case.op in self.settings.only]
        if self.settings.pairs:
            cases = list(with_gradients(cases, self.settings.pairs, self.settings.soc, self.settings.cann))
        if self.settings.cases:
            cases = [case for case in cases if case.id in self.settings.cases]
        if self._where is not None:
            cases = [case for case in cases if self._where(case)]
        if self.settings.authority == DOCUMENT and not every_tier:  # a named case runs whoever demands it
            cases = list(demanded(cases, self.settings.soc, self.settings.cann))
        return cases

    def foreign(self, file: Path) -> Loaded:
        """Return the content of another tool's catalogue file; the end of the run reports its cases that cannot run."""
        if file not in self._foreign:
            self._foreign[file] = load_foreign(file, limit=self.settings.max_elements)
        return self._foreign[file]

    def open(self) -> None:
        """Load the backend; read its name and the devices that the workers share. Raises OracleError."""
        self.bench.open()
        about = self.bench.about
        self.backend_name, self.versions = about.name, about.versions
        self.settings = replace(self.settings, devices=self.bench.shares)

    def try_backend(self) -> None:
        """Load the backend before workers do. Raises OracleError if this fails."""
        self.open()
        self.bench.close()

    def spread(self, cases: Sequence[Case]) -> None:
        """Let these cases, in this order, run on the cluster if there is one. Raises OracleError if it does not
        answer."""
        if self.settings.cluster is not None:
            self.bench.elsewhere = ClusterRunner(self.settings, cases)
            self.remarks += [self.bench.elsewhere.left_out] if self.bench.elsewhere.left_out else []

    def expectations(self, folder: Path) -> Expectations:
        """Return the expectations for the backend and for the catalogue in a folder."""
        if folder not in self._expectations:
            names = [self.backend_name or self.settings.backend]
            if self.settings.emulate and names == ["aclnn"]:
                names.append("cpu")  # the emulated kernels compute like the project's own
            own = [load_expectations(expectations_file(folder, name)).entries for name in names]
            self._expectations[folder] = Expectations((*self._given, *chain(*own)))
        return self._expectations[folder]

    @cached_property
    def _given(self) -> tuple[Expectation, ...]:
        """The entries of expectation files that options name, and of the project's own file."""
        paths = [Path(path) for path in self.settings.expectations]
        project = Project.near(Path.cwd()).folder
        paths += [] if project is None else [expectations_file(project, self.backend_name or self.settings.backend)]
        return tuple(chain.from_iterable(load_expectations(path).entries for path in paths))

    def check_expectations(self, chosen: Iterable[Path]) -> None:
        """Remark on expired expectations. Raise OracleError for an expectation about the operators of some catalogues
        that matches none of their cases, of any tier. The entries of the built-in catalogue are left to the tests: to
        match them here would expand all of it."""
        read = set(chosen)
        for folder in sorted({file.parent for file in read}):
            others = [slug_of(file) for file in files(folder) if file not in read]
            result = Expectations(self._given) if folder == default_dir() else self.expectations(folder)
            result = result.not_about(others)
            texts = [_("{where}: expired on {day}; its cases count as failures", where=each.where, day=each.expires)
                     for each in result.entries if each.expired]  # fmt: skip
            self.remarks += [said for said in map(self.language.say, texts) if said not in self.remarks]
            about = {f for f in read if f.parent == folder and any(e.may_be_about(slug_of(f)) for e in result.entries)}
            if result.entries:
                result.require_matches(self._catalogue(about))

    def _catalogue(self, read: set[Path]) -> Iterator[Case]:
        """Yield every case of some catalogues, first the cases that this run has already read."""
        for (file, _tier), cases in list(self._cases.items()):
            if file in read:
                yield from cases
        for file in sorted(read):
            if not is_foreign_catalogue(file):
                yield from load(file)

    def chosen(self, cases: Sequence[Case]) -> set[str]:
        """Return the ids of the collected cases that this process must run."""
        if self._failed is not None:
            cases = [case for case in cases if case.id in self._failed]
        shard = self.settings.shard
        wanted = {case.id for case in cases} if shard is None else shard.pick(cases)
        return wanted if self.earlier is None else wanted - self.earlier.ended

    @property
    def _chosen(self) -> list[str]:
        """The options, except those of an earlier run, that selected some of the catalogue's cases."""
        return [*self.settings.chosen, *self.chosen_by]

    @property
    def _failed(self) -> frozenset[str] | None:
        return None if self.earlier is None else self.earlier.failed

    def costs(self, planned: Iterable[tuple[Path, str]]) -> dict[str, float]:
        """Return the approximate seconds that each planned (file, id) pair takes on one core."""
        ids = {case_id for _, case_id in planned}
        files = {file for file, _ in planned}
        return {case.id: cost(case) for file in sorted(files) for case in self.cases(file) if case.id in ids}

    def for_worker(self) -> dict[str, Any]:
        """Return the data that an xdist worker needs: the backend's own name, which selects expectations; the devices
        that it shares with others; and the work that an earlier run left."""
        earlier = self.earlier or Earlier()
        return {
            "backend": self.backend_name,
            "devices": list(self.settings.devices),
            "ended": sorted(earlier.ended),
            "failed": None if earlier.failed is None else sorted(earlier.failed),
        }

    # running ---------------------------------------------------------------------------------------------------------

    def run_case(
        self, case: Case, folder: Path, then: Case | None = None, *, ignore_expectations: bool = False
    ) -> CaseRecord:
        """Run one case and return its record. ``then``: the case that this process runs next, if known."""
        record = self.bench.run_case(case, None if ignore_expectations else self._expected(case, folder), then)
        if self.bench.elsewhere is not None:
            self.lost = self.bench.elsewhere.lost
        return record

    def worker_lost(self, file: Path, case_id: str, worker: str) -> CaseRecord:
        """Return the record of a case whose worker ended. It does not judge the device, which is elsewhere."""
        case = next(case for case in self.cases(file, every_tier=True) if case.id == case_id)
        text = f"the worker {worker} ended while it had this case; --resume repeats it"
        return record_of(case, self.settings.for_worker(worker), Outcome("notrun", text))

    def _expected(self, case: Case, folder: Path) -> Expectation | None:
        result = self.expectations(folder)
        if result.ask_for_cann and not self.versions:
            with suppress(OracleError):  # the case itself reports a backend that does not open
                self.bench.open()
                self.versions = self.bench.about.versions
        return result.of(case, self.settings.soc, self.versions.get("cann", ""))

    # recording -------------------------------------------------------------------------------------------------------

    @property
    def may_be_empty(self) -> bool:
        """Whether a run without a case still has a record: another shard or an earlier run can have all cases."""
        return self.settings.shard is not None or self.earlier is not None

    def begin(self, planned: Sequence[tuple[Path, str]], given: Iterable[Path] = ()) -> None:
        """Start the record of the planned (file, id) pairs. ``given``: all catalogues that cases were selected from.
        Raises OracleError for an id planned twice."""
        given = list(given)
        if self.settings.cases:
            known = {case_id for _, case_id in planned}
            if self.may_be_empty:  # another shard or an earlier run can have the case
                known |= {case.id for file in given for case in self.cases(file)}
            if missing := sorted(self.settings.cases - known):
                more = f", nor {len(missing) - 1} more" if missing[1:] else ""
                raise OracleError(f"no case {missing[0]!r}{more} is planned with the paths and options that are given")
        first: dict[str, Path] = {}
        for file, case_id in planned:
            if first.setdefault(case_id, file) != file:
                raise OracleError(f"the id {case_id} is planned twice: in {first[case_id]} and in {file}")
        files = sorted({file for file, _ in planned})
        self._planned = set(files)
        self.check_expectations(files)
        for file in filter(is_foreign_catalogue, files):
            self.foreign(file)  # a process with workers collects nothing itself
        header = self.header(sorted({*map(Path.resolve, files), *given}))
        self._begin(header, [case_id for _, case_id in planned])
        self.active = True

    def _begin(self, header: RunHeader, planned: Sequence[str]) -> None:
        """Start the record, or continue the record of --resume."""
        if self.earlier is not None:
            self.earlier.check(header, len(planned))
            missing = self.earlier.missing_cases_text(planned)
            if missing and not self._chosen and not header.shard:
                raise OracleError(f"{missing}; give that run's catalogue, --operator, --volume and --soc")
            if missing and not planned and not header.shard:
                raise OracleError(f"{missing}: none is left to run; leave {' '.join(self._chosen)} out")
            if missing:
                self.remarks.append(missing)
            self.remarks += map(self.language.say, self.earlier.words(header))
            if self.earlier.continued is not None:
                self.recorder.go_on(self.earlier.continued)
                return
        self.recorder.begin(len(planned), header)

    def header(self, files: Sequence[Path]) -> RunHeader:
        """Return the header of the run, which is the record's first line."""
        result = header_of(self.settings, {**versions(), **self.versions})
        return replace(
            result,
            backend=self.backend_name or self.settings.backend,
            catalogue_sha256=digest(files),
            command=shlex.join(self.command),
            shard=str(self.settings.shard or ""),
            chosen=shlex.join([*self._chosen, *([] if self.earlier is None else self.earlier.chosen)]),
        )

    def explain(self) -> None:
        """Divide the failures into groups, and write them into the record. Further calls, similar to those of the
        largest groups, are run if the run has enough cases and ended normally, without a cluster or
        --record-outputs."""
        if self.recorder.good:
            return
        record = self.recorder.record()
        most = min(CALLS, len(record.cases))
        apart = self.bench.elsewhere is not None or self.settings.record_outputs is not None
        stopped = bool(self.lost) or len(record.cases) < record.planned
        if not self.settings.explain or apart or stopped or most < AT_ONCE or self.settings.tier == HUGE:
            self.recorder.explain(groups(record))
            return
        try:
            result = self._learned(record, most)
        except KeyboardInterrupt:  # every case has run: Ctrl-C only ends the further calls
            result = groups(record)
        except Exception as error:  # a fault of this package must not lose a verdict
            text = "".join(traceback.format_exception(error)).rstrip()
            self.problems.append(f"the further calls of this run failed, its verdicts stand; please report:\n{text}")
            result = groups(record)
        self.recorder.explain(result)

    def _learned(self, record: Record, most: int) -> list[Group]:
        """Return the groups, distinguished by at most ``most`` further calls; the largest groups also have scripts."""
        until = time.monotonic() + SECONDS
        case_of, soc, cann = self._case_of(record), self.settings.soc, self.settings.cann or ""
        asking = GroupExplorer(
            case_of, self.bench.further, self.bench.step_of, soc, cann, most, until - SECONDS * OF_SCRIPTS
        )
        result = asking.groups(record)
        of_state = True  # tested group by group, from the largest, while it is true
        for number, group in enumerate(result[:ASKED]):
            case = case_of(group.smallest)
            if case is None or group.status != "fail":
                continue
            of_state = of_state and self.bench.alone(case)
            if of_state:
                result[number] = replace(group, cause=OF_STATE, explained=group.failures, shrink="")
            else:
                seconds = (until - time.monotonic()) / (min(len(result), ASKED) - number)
                result[number] = replace(group, script=self._script(case, seconds))
        self.remarks += [further(asking.calls, self.language)] if asking.calls else []
        return result

    def _script(self, case: Case, seconds: float) -> str:
        """Return a failing case as a script, as small as possible within ``seconds``; "" if it does not fail again."""
        if seconds <= 0:
            return ""
        try:
            return script(shrink_with(self.bench.further, case, self.settings, seconds=seconds))
        except OracleError:
            return ""

    def _case_of(self, record: Record) -> Callable[[str], Case | None]:
        """Return a function that finds a planned case of the failed operators by its id."""
        failed = {case.op for case in record.cases if not case.ok}
        files = {file for file, _ in self._cases} | self._planned
        known = {
            case.id: case for file in sorted(files) if operator_of(file) in ("", *failed) for case in self.cases(file)
        }
        return known.get

    def finish(self) -> list[str]:
        """End the record and release the backend; return the terminal's last lines: totals and the record's path."""
        self.recorder.end()
        if late := self.recorder.unwritten:
            self.problems.append(
                f"--record {self.record}: {self.recorder.trouble}: its last {len(late):,} lines could not be written"
            )
        try:
            self.bench.close()
        except OracleError as error:
            self.problems.append(str(error))
        try:
            self.remarks += filter(None, [self.recorder.make_sure()])  # last: until here it can be removed
        except OracleError as error:
            self.problems.append(str(error))
        counts = self.recorder.counts()
        lines = summary(counts, self.language)
        lines += by_layer(scores(self.recorder.said.cases.values()), self.language)
        if self.record is not None:
            lines.append(f"record: {self.record}")
            if counts.get("notrun"):
                again = _("to go on: the same command with --resume {record}", record=shlex.quote(str(self.record)))
                lines.append(self.language.say(again))
        if self.recorder.kept is not None:
            lines.append(self.language.say(_("the record that was there is kept: {record}", record=self.recorder.kept)))
        return lines

    @property
    def notes(self) -> list[str]:
        """The terminal's lines above the totals: a device that was not released, cases that were not tested."""
        lines = [*(f"ERROR: {problem}" for problem in self.problems), *self.remarks]
        lines += [f"WARNING: {sentence}" for sentence in describe_changes((), self.recorder.said.changes)]
        lines += [f"WARNING: {sentence}" for sentence in untrusted()]
        if self.settings.isolate is False and self.settings.backend not in OURS:
            text = _("--no-isolate: the device ran in the process of the run; nothing is promised of this run")
            lines.append(f"WARNING: {self.language.say(text)}")
        sentences = (*self.recorder.said.given, *self.recorder.unrun())
        return [*lines, *(self.language.say(Phrase(sentence)) for sentence in sentences)]

    @property
    def rows(self) -> list[str]:
        """The rows of other tools' files that are not run here, with their reasons, by file."""
        lines: list[str] = []
        for file, result in self._foreign.items():
            unrun = result.unrun(self.settings.soc)
            lines += [f"{display(file)}: {result.summary}", *unrun] if unrun else []
        return lines

    @property
    def failed(self) -> bool:
        return bool(self.problems) or not self.recorder.good


def header_of(settings: Settings, versions: dict[str, str]) -> RunHeader:
    """Return the record's header as far as the settings alone determine it."""
    return RunHeader(
        schema=SCHEMA,
        backend=settings.backend,
        backend_options=dict(settings.backend_options),
        soc=settings.soc,
        cann=settings.cann,
        gate=settings.gate,
        authority=settings.authority,
        subnormals=settings.subnormals or ("flush" if platform(settings.soc).flushes else "keep"),
        standard=settings.standard,
        seed=settings.seed,
        shuffle="" if settings.shuffle is None else str(settings.shuffle),
        tier=settings.tier,
        layers=settings.layers,
        overflow="saturate" if settings.saturates else "inf_nan",
        third_party=settings.third_party,
        replay_arguments=settings.replay_arguments,
        versions=versions,
        catalogue_sha256="",
        command="",
    )


def versions() -> dict[str, str]:
    """Return the versions that can change a result, for the record."""
    result = {"python": machine.python_version(), "platform": f"{sys.platform} {machine.machine()}"}
    packages = ("aclnn-oracle", "numpy", "ml_dtypes", "gmpy2", "pytest")
    return {**result, **{name: version_of(name) or "not installed" for name in packages}}
