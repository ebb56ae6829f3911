"""pytest hooks of the process that owns the terminal: record, progress, summary and report."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from ..model.errors import OracleError
from ..numerics.floats.environment import ieee_arithmetic
from ..reporting.language.translate import _
from ..settings.options import PROPERTY
from .session import Run
from .terminal import MIDDLE, Costs, Progress, Quiet, failures, few


class ControllerHooks:
    """Hooks of the process that owns the terminal, registered once cases are planned. It writes the record as the
    cases' reports arrive; at the end it prints the summary and writes the report. ``costs``: of its cases; None if
    other tests run too, and pytest then shows the progress."""

    def __init__(self, run: Run, report: Path | None, config: pytest.Config, costs: Costs | None = None) -> None:
        self.run = run
        self.report = report
        self.summary: list[str] = []
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        self.progress: Progress | None = None
        self.reporter, self.warned = reporter, False
        self.quiet: Quiet | None = None  # if every line is ours and -v is not given
        if reporter is not None and costs is not None and config.option.verbose <= 0:
            reporter.showfspath = False
            self.progress = Progress(run.recorder.left, reporter, run.language, costs)
            self.quiet = Quiet(reporter)

    def tell_ahead(self) -> None:
        """Print how long a long run is about to take."""
        if self.progress is not None and (text := self.progress.ahead()):
            self.progress.write_line(text)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Any, Any]:
        """Print no letter per case: the progress line is shorter and says more. ``-v`` gives pytest's own lines."""
        status = yield
        return (status[0], "", *status[2:]) if _is_ours(report) and self.progress is not None and status else status

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when in ("setup", "teardown"):
            return
        for key, value in report.user_properties:
            if key == PROPERTY:
                case = self.run.recorder.case(str(value))
                self._tell_trouble()
                if self.progress is not None:
                    self.progress.case(case.id, case.status)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.progress is not None:
            self.progress.close()
        written = []
        if self.quiet is not None:
            self.quiet.close()
        try:
            self.run.explain()
            self.run.recorder.end()
            written = self.write_report()  # before the device closes, which can take long or end the process
        except (OracleError, OSError) as error:
            self.run.problems.append(str(error))
        self.summary += [*self.run.finish(), *written]
        if written and self.report is not None and not self.report.exists():
            self.run.problems.append(f"{self.report}: the report was removed while the run ended")
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:  # there are cases, but none to do here
            session.exitstatus = pytest.ExitCode.OK
        if self.run.lost or (self.run.failed and session.exitstatus == pytest.ExitCode.OK):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.quiet is not None:
            gc.freeze()  # pytest's five garbage collections at its end would only scan our objects

    def _tell_trouble(self) -> None:
        """Print once, and at once, that the record is kept in memory."""
        if self.reporter is not None and self.run.recorder.trouble and not self.warned:
            self.warned = True
            text = f"WARNING: --record {self.run.record}: {self.run.recorder.trouble}; the run goes on, what the file"
            self.reporter.write_line(f"\n{text} does not take is kept in memory and tried again")

    @ieee_arithmetic  # a device in this process can change the rounding, and digits need the default
    def write_report(self) -> list[str]:
        """Write the report; return the terminal's lines about it."""
        if self.report is None or self.run.record is None:
            return []
        from ..reporting import formats

        formats.write([self.run.recorder.record()], self.report, language=self.run.language)
        return [f"report: {self.report}"]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> Generator[None, None, None]:
        """Print how the run ended, after all other plug-ins: its last lines are the totals and the report's path.

        pytest's own lines of every failing case, thousands of them, appear only with -v.
        """
        kept = {}
        if self.quiet is not None:
            kept = {name: terminalreporter.stats.pop(name, []) for name in ("failed", "warnings")}
            others = [report for report in kept["failed"] if not _is_ours(report)]
            terminalreporter.stats.update({"failed": others} if others else {})
        yield
        terminalreporter.stats.update({name: reports for name, reports in kept.items() if reports})
        terminalreporter.section("aclnn-oracle")
        for line in self._said():
            terminalreporter.write_line(line)

    def _said(self) -> list[str]:
        """Return the last lines: failures, then notes, totals and paths."""
        language, notes = self.run.language, self.run.notes
        if self.quiet is None:
            return [*notes, *self.run.rows, *self.summary]
        if self.quiet.kept_back:
            text = _("{n} lines of other plug-ins are not shown; -v shows them", n=self.quiet.kept_back)
            notes.append(language.say(text))
        shown = failures(
            self.run.recorder.record(),
            language,
            MIDDLE - min(len(notes), MIDDLE // 4),
            _("-v shows each failure in full"),
        )
        return [*shown, *few(notes, MIDDLE - len(shown), language), *self.run.rows, *self.summary]


def _is_ours(report: Any) -> bool:
    return any(key == PROPERTY for key, _value in getattr(report, "user_properties", ()))
