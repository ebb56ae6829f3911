"""Settings of the tests, the emulated CANN's toolkit tree, and the stated cases, each made once."""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import small_runs
import stated
from hypothesis import settings
from ordinary import FULL, one_of_each_kind

from oracle.case.prepare import Prepared
from oracle.catalogue import Case, default_dir, files, load, select
from oracle.catalogue.loader import load_default
from oracle.emulator import build
from oracle.model.aclnn import platform
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS
from oracle.operators.definition.page_checks import accepted
from oracle.run.preparation import keep
from oracle.settings.settings import Settings

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell, where programs ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the programs that tests start must be interruptible

# Wall time means little on a shared machine.
settings.register_profile("checkout", deadline=None)
settings.load_profile("checkout")


def pytest_configure(config: pytest.Config) -> None:
    """Expand the catalogue once for all workers; otherwise each worker would spend minutes of processor time on it."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        keep(files(default_dir()), "smoke", print)
        keep([path for path in files(default_dir()) if one_of_each_kind([path.stem])], None, print)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests in a run of all tests; a run that names a folder, a file or a marker includes them."""
    everything = [config.invocation_params.dir / name for name in config.args] == [
        config.rootpath / name for name in config.getini("testpaths")
    ]
    if everything and not config.option.markexpr and not FULL:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: pytest -m slow runs it, and so does CI"))


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what lasts to the end, and scan seldom: trees of sources are kept, too."""
    gc.freeze()
    gc.set_threshold(100_000)


def _processor_time() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes more processor time than ACLNN_TEST_SECONDS, its child processes included."""
    most, before = float(os.environ.get("ACLNN_TEST_SECONDS", "inf")), _processor_time()
    yield
    took = _processor_time() - before
    if took > most:
        pytest.fail(
            f"{took:.1f} s of processor time, {most:g} at most; tests/ordinary.py says what to do", pytrace=False
        )


@pytest.fixture(scope="session")
def tree() -> Path:
    try:
        return build()
    except OracleError as error:
        if "did not compile" in str(error):
            raise
        pytest.skip(f"no emulated CANN here: {error}")


@pytest.fixture
def blended(monkeypatch):
    """Register an operator with an attribute of every C type, for one test."""
    import blended

    monkeypatch.setitem(OPERATORS._all(), blended.OPERATOR.name, blended.OPERATOR)
    return blended


@pytest.fixture
def reducing(monkeypatch):
    """Register operators with outputs that are sums, for one test, as pages from outside."""
    import reducing

    for operator in (reducing.HUBER, reducing.SCALE_SHIFT, reducing.SWISH_BETA):
        monkeypatch.setitem(OPERATORS._all(), operator.name, accepted(operator))
    return reducing


@pytest.fixture(scope="session")
def stated_files(tmp_path_factory):
    return stated.write(tmp_path_factory.mktemp("stated"))


@pytest.fixture(scope="session")
def stated_cases(stated_files) -> tuple[Case, ...]:
    return tuple(case for path in stated_files for case in load(path))


def is_empty(case: Case) -> bool:
    return any(plan is not None and 0 in plan.shape for plan in case.inputs.values())


@pytest.fixture(scope="session")
def prepared(stated_cases):
    """Return ``prepared(op, soc, seed)``: the operator's stated cases with data and reference. An operator without
    stated cases gets the first cases of the catalogue that compute."""

    @cache
    def make(op: str, soc: str = "ascend910b", seed: int = 0) -> tuple[Prepared, ...]:
        settings = Settings(soc=soc, seed=seed)
        stated = [case for case in stated_cases if case.op == op]
        refused = () if platform(soc).bfloat16 else ("bfloat16",)
        smoke = (
            case for case in select(load_default((op,), None, "smoke"), tier="smoke")
            if not stated and case.is_on(soc) and case.computes(soc)
            and case.dtype not in refused and not is_empty(case)
        )  # fmt: skip
        planned = [case for case in stated if case.is_on(soc)] or list(islice(smoke, 4))
        return tuple(Prepared.make(case, settings) for case in planned)

    return make


@pytest.fixture
def lean(monkeypatch):
    """Disable Hypothesis' plug-in: every run of pytest in a test would import it anew, and slowly."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the run that this test belongs to


@pytest.fixture
def project(lean, pytester, monkeypatch):
    """A folder with one catalogue; programs that are started there can import the misbehaving devices."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.path.joinpath("log_sigmoid_backward.yaml").write_text(small_runs.CATALOGUE)
    return pytester
