"""Goldens and verdicts have the same bits after any change that a library makes to the process's arithmetic."""

from __future__ import annotations

import decimal
import os
import shutil
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import processes
import pytest
from ordinary import in_full_alone

import oracle
from oracle.model.errors import OracleError
from oracle.numerics.floats import environment
from oracle.system import start

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("hostile.c")

# Goldens, bounds and verdicts of data that shows a wrong state: subnormal numbers, ties, specials; the last call is
# large enough for threads. The code that spoils the process comes before it, or after it.
GOLDENS = """
def digest():
    import hashlib
    import numpy as np
    from ml_dtypes import bfloat16
    import oracle
    from oracle.operators import reference

    found = hashlib.sha256()

    def add(array):
        found.update(np.ascontiguousarray(array).tobytes())

    bits = np.random.Philox(key=11).random_raw(1 << 12).view(np.uint32)
    for dtype in (np.float16, bfloat16, np.float32):
        word = np.uint16 if np.dtype(dtype).itemsize == 2 else np.uint32
        g, x = (half.view(word).view(dtype)[:2048] for half in np.array_split(bits, 2))
        calls = [
            ("aclnnLogSigmoidBackward", {"self": x, "buffer": x}),
            ("aclnnBinaryCrossEntropyBackward", {"self": x, "target": g, "reduction": 1}),
            ("aclnnSoftmaxBackward", {"output": x, "dim": 0}),
        ]
        for op, more in calls:
            ((output, golden),) = oracle.golden(op, gradOutput=g, **more).items()
            add(golden)
            attrs = {k: v for k, v in more.items() if isinstance(v, int)}
            inputs = {"gradOutput": g} | {k: v for k, v in more.items() if k not in attrs}
            inputs.setdefault("weightOptional", None)
            inputs = {p.name: inputs[p.name] for p in oracle.operators.operator(op).parameters if p.kind == "input"}
            call = oracle.Call(op, "ascend910b", inputs, attrs, {output: np.empty_like(x)})
            known = reference(call)
            for array in (known.golden, known.value, known.bound):
                add(array[~np.isnan(array)])
            value = np.asarray(known.value)
            said = oracle.judge("mixed", golden=value, actual=(known.golden.view(word) ^ 1).view(dtype), dtype=dtype)
            add(np.array([said.passed, *said.metrics.values()]))
    large = np.arange(-(1 << 17), 1 << 17).astype(np.float32) * np.float32(2.0**-11)  # exact, however rounded
    add(oracle.golden("aclnnLogSigmoidBackward", gradOutput=large, self=-large, buffer=large)["gradInput"])
    return found.hexdigest()
"""


THREADS = {"ACLNN_ORACLE_BLOCK": "4096", "ACLNN_ORACLE_THREADS": "2"}


def process(code: str, *, compiled: bool = True, **variables: str) -> str:
    """Return the output of code in its own process. Unless ``compiled``, it uses no cached bytecode."""
    own = {} if compiled else {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": os.devnull}
    done = processes.python("-c", code, **{**own, **THREADS, **variables})
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def right() -> str:
    return process(GOLDENS + "print(digest())")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return ``library(*flags)``: the path of the hostile library, compiled with the flags."""
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        pytest.skip("no C compiler (CC, gcc) to build the hostile library with")
    folder = tmp_path_factory.mktemp("hostile")

    def make(*flags: str) -> Path:
        path = folder / f"hostile{'_'.join(flags)}.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", path, SOURCE, "-lm", "-lpthread", *flags], check=True)
        return path

    return make


def spoiled(spoil: str, when: str, after: str = "") -> str:
    """Return the digest of a process that a line spoils before, or after, it imports the package."""
    before = when == "before the import"
    code = spoil + GOLDENS if before else GOLDENS + "digest()\n" + spoil
    return process(code + "print(digest())\n" + after, compiled=not before)


@in_full_alone
@pytest.mark.parametrize("when", ["before the import", "after the import"])
def test_a_library_that_flushes_subnormals_when_it_is_loaded_changes_no_golden(library, right, when):
    load = f"import ctypes; ctypes.CDLL({str(library('-ffast-math'))!r})\n"
    flushes = "assert float.fromhex('0x1p-1022') / two == 0, 'this compiler sets nothing at load'\n"
    assert spoiled(load + "two = 2.0\n" + flushes, when, flushes) == right


CALLS = [("upward", "before"), *((call, "after") for call in ("upward", "downward", "toward_zero", "traps"))]


@pytest.mark.parametrize(("call", "when"), CALLS)
def test_a_call_that_sets_rounding_or_traps_changes_no_golden(library, right, call, when):
    spoil = f"import ctypes; ctypes.PyDLL({str(library())!r}).{call}()\n"
    assert spoiled(spoil, f"{when} the import") == right


def test_a_golden_asked_for_in_a_foreign_thread_that_rounds_upward_is_right(library, right):
    code = f"""
import ctypes
said = []
@ctypes.CFUNCTYPE(None)
def call():
    assert 1.0 + tiny > 1.0
    said.append(digest())
    assert 1.0 + tiny > 1.0  # what the thread had set is its own again
tiny = 2.0**-60
ctypes.CDLL({str(library())!r}).in_a_thread(call)
assert 1.0 + tiny == 1.0
print(*said)
"""
    assert process(GOLDENS + code) == right


@pytest.mark.parametrize(
    "spoil",
    [
        "import numpy as np; np.seterr(all='raise')",
        "import numpy as np; np.seterr(all='call'); np.seterrcall(lambda *a: 1 / 0)",
        "import numpy as np; np.seterr(all='print')",
        "import numpy as np, warnings; np.seterr(all='warn'); warnings.simplefilter('error')",
        "import decimal; decimal.setcontext(decimal.Context(prec=2, rounding='ROUND_UP', traps=[decimal.Inexact]))",
        "import gmpy2; gmpy2.set_context(gmpy2.context(precision=5, round=gmpy2.RoundUp, trap_inexact=True))",
        "import gmpy2; gmpy2.set_context(gmpy2.context(emin=-3, emax=3, subnormalize=True, trap_underflow=True))",
    ],
)
def test_settings_of_libraries_change_no_golden(right, spoil, monkeypatch):
    for name, value in THREADS.items():
        monkeypatch.setenv(name, value)
    result: dict[str, Any] = {}

    def in_a_thread() -> None:  # these settings belong to a thread
        exec(f"{GOLDENS}\n{spoil}\nsaid = digest()", result)

    with warnings.catch_warnings():
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
    assert result.get("said") == right


def test_a_locale_with_decimal_commas_changes_no_golden(right, tmp_path):
    localedef = shutil.which("localedef")
    if localedef is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("no locale with decimal commas can be made here: localedef and its sources are missing")
    made = subprocess.run([localedef, "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], check=False)
    assert (tmp_path / "de_DE.UTF-8").is_dir(), made
    spoil = "import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8'); assert f'{1.5:n}' == '1,5'"
    assert process(f"{GOLDENS}\n{spoil}\nprint(digest())", LOCPATH=str(tmp_path)) == right


def test_the_caller_finds_its_own_state_again():
    mine, theirs = decimal.Context(prec=3), gmpy2.context(precision=33)
    x = np.ones(4, np.float32)
    with np.errstate(divide="raise", over="print"), decimal.localcontext(mine), gmpy2.context(theirs):
        before = np.geterr(), decimal.getcontext().prec, gmpy2.get_context().precision
        oracle.golden("aclnnLogSigmoidBackward", gradOutput=x, self=x, buffer=x)
        assert (np.geterr(), decimal.getcontext().prec, gmpy2.get_context().precision) == before


def test_a_platform_whose_registers_cannot_be_reached_refuses_instead_of_computing_wrongly(monkeypatch):
    monkeypatch.setattr(environment, "is_ieee", lambda: not start.wrong())
    monkeypatch.setattr(environment, "write", lambda state: None)
    monkeypatch.setattr(environment, "with_ieee_registers", lambda state: state)
    monkeypatch.setattr(start, "LITTLE", 2.0**-50)  # with this arithmetic, rounding goes wrong
    x = np.ones(4, np.float32)
    with pytest.raises(OracleError, match="rounds in another direction than to nearest"):
        oracle.golden("aclnnLogSigmoidBackward", gradOutput=x, self=x, buffer=x)


def test_a_thread_of_ours_has_the_arithmetic_of_goldens():
    result = []

    def thread() -> None:
        environment.set_thread()
        result.append((environment.is_ieee(), np.geterr()["over"]))

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    assert result == [(True, "ignore")]
