"""A reduced case as one Python file that needs NumPy and the backend, and this project only where the backend does.

The file carries the data, what a right device computes and how far it may be off; it says what is wrong and exits 1.
"""

from __future__ import annotations

import base64
import zlib
from importlib import resources
from string import Template

import numpy as np

from ..backends import home_of
from ..case.memory import PATTERN, Memory, word
from ..catalogue.data.case import TensorPlan
from ..catalogue.data.inputs import stored_shape
from ..catalogue.data.layout import GUARD_BYTES, arrange
from ..explain.broken_rules import WRITTEN
from ..model.call import Array, TensorSpec
from ..model.dtypes import DTYPES, FORMATS
from ..operators import Reference
from ..operators import references as references_of
from ..settings.settings import Settings
from .shrink import ShrunkCase

_INLINE = 4096  # numbers; more are written packed
_DETERMINISM = "bitwise equal"  # the rule of --determinism begins so


def script(shrunk: ShrunkCase, proof: str = "") -> str:
    """Return the file's text. ``proof``: how a run of it ended, told in its head."""
    case, settings = shrunk.case, shrunk.settings
    memory = Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
    expected = {name: _expected(reference) for name, reference in _references(shrunk, memory).items()}
    template = Template(resources.files(__package__).joinpath("standalone.py.txt").read_text("utf-8"))
    plans = {**case.inputs, **case.outputs}
    dtypes = [p.dtype for p in plans.values() if p is not None]
    special = not all(hasattr(np, d) for d in dtypes) or any("bf" in fields["coarser"] for fields in expected.values())
    return template.substitute(
        title=f"{case.op}: a failure of the backend {settings.backend}.",
        original=shrunk.original.id,
        rule=shrunk.rule,
        reason=_comment(shrunk.record.reason),
        proof=_comment(proof) or "not run before it was handed over",
        guard=GUARD_BYTES,
        imports=_imports(settings, special),
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
    """A text as a line that can stand in a docstring."""
    return " ".join(text.split())[:200].replace("\\", "/").replace('"', "'")


def _references(shrunk: ShrunkCase, memory: Memory) -> dict[str, Reference | None]:
    """What a right device answers, by output; None where it must not write."""
    computes = shrunk.case.computes(shrunk.settings.soc, shrunk.settings.cann)
    found = references_of(memory.call) if computes else {}
    return {name: found[name] if name in found and found[name].written else None for name in shrunk.case.outputs}


def _output(name: str, plan: TensorPlan | None, memory: Memory, expected: dict[str, str], shrunk: ShrunkCase) -> str:
    if name in memory.outputs:
        made = _poisoned(plan, memory, shrunk.rule)
    else:
        made = f"(None, {None if plan is None else 'described'!r})"
    fields = {**expected, "largest": repr(_largest(plan) if shrunk.settings.saturates else None)}
    told = "".join(f"        {field}={value},\n" for field, value in fields.items())
    return f"    {name!r}: Output(\n        lambda: {made},\n{told}    ),\n"


def _largest(plan: TensorPlan | None) -> float | None:
    return FORMATS[plan.dtype].max if plan is not None and plan.dtype in FORMATS else None


def _imports(settings: Settings, special: bool) -> str:
    lines = ["import ml_dtypes  # noqa: F401  NumPy learns bfloat16 from it"] if special else []
    if settings.emulate:
        started = f"oracle.emulator.activate({settings.soc!r}, cann={settings.cann!r})"
        lines += ["import oracle.emulator", started]
    return "".join(f"{line}\n" for line in lines)


def _input(name: str, plan: TensorPlan | None, memory: Memory) -> str:
    array = memory.inputs[name]
    if plan is None or not isinstance(array, np.ndarray):
        return "None" if plan is None else repr("described")
    stored = array[tuple(slice(0, n) for n in stored_shape(plan.shape, plan.view))]
    return _tensor(plan, stored)


def _tensor(plan: TensorPlan, values: Array) -> str:
    layout = arrange(plan.shape, plan.view)
    where = f"{layout.strides!r}, {layout.offset}, {layout.span}"
    return f"tensor({plan.shape!r}, {plan.dtype!r}, {where}, {_numbers(values, plan.dtype)})"


def _poisoned(plan: TensorPlan | None, memory: Memory, rule: str) -> str:
    """An output that holds what it held when the case failed: a kernel may add to it, or clear it by a product. What is
    not written is seen by the pattern, which is no result."""
    assert plan is not None
    layout = arrange(plan.shape, plan.view)
    held = ""
    if memory.poison != PATTERN and rule != WRITTEN:
        held = f", held={word(memory.poison, DTYPES[plan.dtype].numpy)!r}"
    return f"tensor({plan.shape!r}, {plan.dtype!r}, {layout.strides!r}, {layout.offset}, {layout.span}{held})"


def _numbers(array: Array, dtype: str) -> str:
    """Values as a Python list, or packed where they are many; both exact."""
    if array.size > _INLINE:
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
        return f"unpacked({packed!r}, {dtype!r})"
    kind = np.float64 if DTYPES[dtype].kind in ("float", "narrow") else array.dtype
    return repr(array.astype(kind).reshape(-1).tolist())


def _spec(name: str, spec: TensorSpec) -> str:
    """What aclCreateTensor is given for a tensor."""
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
