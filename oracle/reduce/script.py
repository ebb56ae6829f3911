"""A reduced case as one Python file, which is written only if it is known to fail.

The file contains the data, the right results and their error bounds. It names the wrong elements and exits with 1.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np

from ..backends import home_of
from ..case.prepare import PATTERN, Memory, word
from ..catalogue.data.case import Case, TensorPlan, stored_shape
from ..catalogue.data.layout import GUARD_BYTES, arrange
from ..explain.structure import WRITTEN
from ..model.call import Array, TensorSpec
from ..model.dtypes import DTYPES, FORMATS
from ..model.errors import bounded
from ..operators import Reference, references as references_of
from ..place import Bench
from ..record.types import GONE, CaseRecord
from ..settings.settings import Settings
from .shrink import ShrunkCase, State, shrink_with

_INLINE = 4096  # numbers; longer data is written packed
_DETERMINISM = "bitwise equal"  # the beginning of the rule of --determinism


def script(shrunk: ShrunkCase, proof: str = "") -> str:
    """Return the file's text. ``proof``: how a run of it ended, for its head."""
    case, settings = shrunk.case, shrunk.settings
    memory = Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
    expected = {name: _expected(reference) for name, reference in _references(shrunk, memory).items()}
    template = Template(resources.files(__package__).joinpath("standalone.py.txt").read_text("utf-8"))
    dtypes = [p.dtype for p in case.plans.values()]
    special = not all(hasattr(np, d) for d in dtypes) or any("bf" in fields["coarser"] for fields in expected.values())
    return template.substitute(
        title=f"{case.op}: a failure of the backend {settings.backend}.",
        original=shrunk.original.id,
        rule=shrunk.rule,
        reason=_comment(shrunk.record.reason),
        proof=_comment(proof) or "not run before it was handed over",
        guard=GUARD_BYTES,
        imports=_imports(settings, special),
        pages=_pages(settings),
        backend=repr(home_of(settings.backend)),
        options=repr(dict(settings.backend_options)),
        op=repr(case.op),
        soc=repr(settings.soc),
        status=repr(case.expected(settings.soc, settings.cann)),
        attrs=repr(dict(case.attrs)),
        runs=max(2, settings.determinism) if shrunk.rule.startswith(_DETERMINISM) else 1,
        inputs="".join(f"    {n!r}: {_input(n, p, memory)},\n" for n, p in case.inputs.items()),
        outputs="".join(_output(n, p, memory, expected[n], shrunk) for n, p in case.outputs.items()),
        specs="".join(_spec(n, s) for n, s in memory.call.specs.items()),
        null=repr(sorted(case.null)),
    )


def _comment(text: str) -> str:
    """Return a text as one line that a docstring can contain."""
    return " ".join(text.split())[:200].replace("\\", "/").replace('"', "'")


def _references(shrunk: ShrunkCase, memory: Memory) -> dict[str, Reference | None]:
    """Return the right results by output; None for an output that must not be written."""
    computes = shrunk.case.computes(shrunk.settings.soc, shrunk.settings.cann)
    result = references_of(memory.call) if computes else {}
    return {name: result[name] if name in result and result[name].written else None for name in shrunk.case.outputs}


def _output(name: str, plan: TensorPlan | None, memory: Memory, expected: dict[str, str], shrunk: ShrunkCase) -> str:
    if name in memory.outputs:
        made = _poisoned(plan, memory, shrunk.rule)
    else:
        made = f"(None, {None if plan is None else 'described'!r})"
    largest = FORMATS[plan.dtype].max if plan is not None and plan.dtype in FORMATS else None
    fields = {**expected, "largest": repr(largest if shrunk.settings.saturates else None)}
    text = "".join(f"        {field}={value},\n" for field, value in fields.items())
    return f"    {name!r}: Output(\n        lambda: {made},\n{text}    ),\n"


def _imports(settings: Settings, special: bool) -> str:
    lines = ["import ml_dtypes  # noqa: F401  NumPy learns bfloat16 from it"] if special else []
    if settings.emulate:
        started = f"oracle.emulator.activate({settings.soc!r}, cann={settings.cann!r})"
        lines += ["import oracle.emulator", started]
    return "".join(f"{line}\n" for line in lines)


def _pages(settings: Settings) -> str:
    """Return the lines that register operators from outside: a device may ask oracle.adapter about its operator."""
    if not settings.operators:
        return ""
    lines = [f"    OPERATORS.add({text!r})\n" for text in settings.operators]
    return f"try:\n    from oracle.operators import OPERATORS\nexcept ImportError:\n    pass\nelse:\n{''.join(lines)}"


def _input(name: str, plan: TensorPlan | None, memory: Memory) -> str:
    array = memory.inputs[name]
    if plan is None or not isinstance(array, np.ndarray):
        return "None" if plan is None else repr("described")
    stored = array[tuple(slice(0, n) for n in stored_shape(plan.shape, plan.view))]
    return _tensor(plan, _numbers(stored, plan.dtype))


def _tensor(plan: TensorPlan, *values: str) -> str:
    layout = arrange(plan.shape, plan.view)
    words = (repr(plan.shape), repr(plan.dtype), repr(layout.strides), str(layout.offset), str(layout.span), *values)
    return f"tensor({', '.join(words)})"


def _poisoned(plan: TensorPlan | None, memory: Memory, rule: str) -> str:
    """Return an output with the content that it had when the case failed: a kernel may add to it, or clear it by a
    product. For unwritten elements it contains the pattern, which equals no result."""
    assert plan is not None
    if memory.poison == PATTERN or rule == WRITTEN:
        return _tensor(plan)
    return _tensor(plan, f"held={word(memory.poison, DTYPES[plan.dtype].numpy)!r}")


def _numbers(array: Array, dtype: str) -> str:
    """Return values as a Python list, or packed if there are many; both are exact."""
    if array.size > _INLINE:
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
        return f"unpacked({packed!r}, {dtype!r})"
    kind = np.float64 if DTYPES[dtype].kind in ("float", "narrow") else array.dtype
    return repr(array.astype(kind).reshape(-1).tolist())


def _spec(name: str, spec: TensorSpec) -> str:
    """Return the arguments of aclCreateTensor for a tensor."""
    how = {"format": spec.format, "strides": spec.strides, "offset": spec.offset, "storage_shape": spec.storage_shape}
    return f"    {name!r}: ({spec.shape!r}, {spec.dtype_name!r}, {how!r}),\n"


def _expected(reference: Reference | None) -> dict[str, str]:
    if reference is None:
        return {"value": "None", "bound": "None", "free": "None", "coarser": "''"}
    shape = reference.golden.shape
    free = np.zeros(shape, bool) if reference.unspecified is None else reference.unspecified
    bound = np.broadcast_to(reference.bound, shape)
    if reference.zeros is not None:
        bound = np.where(reference.zeros, 0.0, bound)
    value = np.broadcast_to(reference.value, shape)
    if reference.exact is not None:
        value = np.where(reference.exact, reference.golden.astype(np.float64), value)
        bound = np.where(reference.exact, 0.0, bound)
    return {
        "value": _numbers(value, "float64"),
        "coarser": repr(reference.coarser if reference.coarser != str(reference.golden.dtype) else ""),
        "bound": _numbers(np.ascontiguousarray(bound, np.float64), "float64"),
        "free": repr(False) if not free.any() else _numbers(free.astype(np.uint8), "uint8"),
    }


# A failing case becomes a script that is known to fail: it is reduced, then run, and only then returned.
#
# The trials run in a child process. If the case ends this process (crash or timeout), every trial gets a new process:
# memory that one trial damages could end another trial. The finished script is run as its reader will run it. If it
# does not fail, the whole case is tried as a script. If that does not fail either, no script is returned.

LIMIT = 300.0  # seconds for the finished script if the settings have no limit


@dataclass(frozen=True)
class Handover:
    """The script of a failing case. ``text``: the script, "" if none fails; ``outcome``: how its run ended."""

    shrunk: ShrunkCase
    text: str
    outcome: str


def hand_over(case: Case, bench: Bench) -> Handover:
    """Reduce a failing case and prove its script. Raises OracleError if the case cannot be reduced."""
    if case.before is not None:  # the forward does not run again: its results become literals
        made = State.of(case, bench.settings.seed, bench.operands_after(case))
        case = replace(made.ready(), before=None)
    ended = False

    def run(candidate: Case) -> CaseRecord:
        nonlocal ended
        if ended:
            bench.restart()
        record = bench.run_case(candidate)
        ended |= record.status in GONE
        return record

    shrunk = shrink_with(run, case, bench.settings)
    failed, text = _proved(shrunk)
    if not failed:
        shrunk, reduced = replace(shrunk, case=State.of(case, bench.settings.seed).ready()), text
        failed, text = _proved(shrunk)
        if not failed:
            return Handover(shrunk, "", f"the reduced case: {reduced}; the whole case: {text}")
        text += "; the case could not be reduced"
    return Handover(shrunk, script(shrunk, proof=text), text)


def _proved(shrunk: ShrunkCase) -> tuple[bool, str]:
    """Run a script as its reader will. Return whether it shows the failure, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failure.py"
        path.write_text(script(shrunk), encoding="utf-8")
        limit = shrunk.settings.timeout or LIMIT
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(word for word in sys.path if word))
        try:
            done = subprocess.run(
                [sys.executable, str(path)], stdin=subprocess.DEVNULL, capture_output=True, env=environment,
                timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return shrunk.record.status == "timeout", f"no answer in {limit:g} s"
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    last = bounded((err.strip() or out.strip()).rpartition("\n")[2], 200)
    return fails(shrunk.record, done.returncode, out, err), f"exit status {done.returncode}: {last}"


def fails(record: CaseRecord, code: int, out: str, err: str) -> bool:
    """Return whether a script's run shows the failure of its case, and not only some failure."""
    if record.status == "crash":
        return code not in (0, 1)
    if record.status == "error":
        return code != 0 and record.reason.partition(":")[0] in err
    return code == 1 and "WRONG" in out


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Redirect the output of a backend or its process to standard error: standard output is for the script."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def in_a_process(settings: Settings) -> Settings:
    """Return settings that give the device its own process, unless --no-isolate is set."""
    return settings if settings.isolate is False else replace(settings, isolate=True)
