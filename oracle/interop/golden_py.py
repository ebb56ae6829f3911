"""A team's ``golden.py`` as a device under test, and our goldens as a ``golden.py`` for others.

Source: the golden plug-ins published in ops-nn and ops-test-kit. A file has ``__golden__ = {"kernel": {"softmax_grad":
"function_name"}, "aclnn": {...}}``, or ``__spec__ = {"softmax_grad": "ClassName", "aclnnX": ...}`` with the function
as the class's ``golden``. A kernel's golden takes NumPy arrays in the kernel's order, and attributes by name. An aclnn
golden takes torch tensors in aclnn's order. Both get the context of ops-test-kit (dtypes, shapes, formats, SoC).

The host's steps before a kernel are done here too (contiguous copies of views, promotion of mixed dtypes). No step
after the kernel is done: the result's dtype and shape are judged as they are.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..model.aclnn import Status
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, dtype_of
from ..model.errors import OracleError, unknown
from ..operators import OPERATORS, validate, writes
from ..operators.definition.checks import promoted
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from .names import kernel_value, normalised_name, operator_named, operators_of_kernel

# Our goldens as a ``golden.py`` for others: ``__golden__`` and ``__spec__`` in ops-test-kit's forms.
#
# The file is plain Python that calls :func:`oracle.golden`; its user needs only this package. A kernel's golden takes
# NumPy arrays in the kernel's order, and attributes by the kernel's names. An aclnn golden takes torch tensors in
# aclnn's order, and attributes by aclnn's names, and returns a list. Both ignore all other arguments.

HEAD = '''\
"""Correctly rounded goldens for TTK and ATK, written by `aclnn-oracle export-golden`. Needs: pip install aclnn-oracle.

Kernels: NumPy arrays in the kernel's order (bfloat16 as ml_dtypes has it), NumPy out. aclnn: torch tensors in, a list
of torch tensors out. Every result is the value of the output type nearest to the exact one.
"""

import numpy as np

import oracle


def _attribute(value, words=()):
    """A kernel's attribute as aclnn takes it: one of its words as a number, a list of one as the one."""
    if isinstance(value, (list, tuple)):
        (value,) = value
    return words.index(value) if isinstance(value, str) and value in words else value


def _golden(op, outputs, given, params):
    """The goldens of a call's outputs, of the dtypes that the tool says, where it says some. An output that the host
    leaves as it is has none: a zero."""
    params |= zip(outputs, map(str, given.get("output_dtypes") or ()))
    found = oracle.golden(op, **params)
    nothing = np.zeros(1, next(iter(found.values())).dtype)
    return [found.get(name, nothing) for name in outputs]


def _numpy(tensor):
    if tensor is None:
        return None
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _torch(array):
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _aclnn(op, outputs, tensors, given, attributes):
    params = {name: _numpy(tensor) for name, tensor in tensors.items()}
    params |= {name: given[name] for name in attributes if name in given}
    return [_torch(golden) for golden in _golden(op, outputs, given, params)]
'''


def golden_py(operators: Iterable[Operator], added: Iterable[str] = ()) -> str:
    """Return the text of the file. If several operators share a kernel, the one with the shortest name provides the
    kernel's golden; aclnn has all. ``added``: external operators as ``module:NAME``, which the file registers."""
    kernels: dict[str, Operator] = {}
    every = list(operators)
    for op in every:
        if op.kernel is not None:
            first = kernels.setdefault(op.kernel.name, op)
            if len(op.name) < len(first.name):
                kernels[op.kernel.name] = op
    parts = [
        HEAD,
        *_known(added),
        *map(_kernel_text, kernels.values()),
        *map(_aclnn_text, every),
        _tables(kernels, every),
    ]
    return "\n\n".join(parts)


def _known(added: Iterable[str]) -> Iterator[str]:
    if lines := [f'OPERATORS.add("{text}")\n' for text in added]:
        yield "from oracle.operators import OPERATORS  # noqa: E402\n\n" + "".join(lines)


def _kernel_text(op: Operator) -> str:
    assert op.kernel is not None
    named = op.kernel.attributes
    attributes = ", ".join(f"{name}={default!r}" for name, (_aclnn_name, default) in named.items())
    optional = {name for name in op.kernel.inputs if op.by_name[name].optional}
    inputs = [f"{name}=None" if name in optional else name for name in op.kernel.inputs]
    values = {name: name for name in op.kernel.inputs}
    values |= {aclnn: _given(op.by_name[aclnn], name) for name, (aclnn, _default) in named.items()}
    values |= {p.name: repr(p.plain) for p in op.attributes if p.name not in values and p.plain is not None}
    # an input of aclnn that the kernel lacks is never read: any tensor of the right shape is suitable
    values |= {name: op.main for name in op.names("input") if name not in values and not op.by_name[name].optional}
    signature = ", ".join([*inputs, *(["*", attributes] if attributes else []), "**given"])
    return f"""\
def {op.kernel.name}({signature}):
    return _golden("{op.name}", {op.outputs!r}, given, {_dict(values)}){"[0]" if len(op.outputs) == 1 else ""}
"""


def _given(parameter: Parameter, name: str) -> str:
    words = f", {tuple(parameter.words)!r}" if parameter.words and parameter.c == "int64" else ""
    return f"_attribute({name}{words})"


def _aclnn_text(op: Operator) -> str:
    inputs = op.names("input")
    optional = {name for name in inputs if op.by_name[name].optional}
    signature = ", ".join([*(f"{n}=None" if n in optional else n for n in inputs), "**given"])
    attributes = op.names("attr")
    return f"""\
class {class_of(op)}:
    @staticmethod
    def golden({signature}):
        return _aclnn("{op.name}", {op.outputs!r}, {_dict({n: n for n in inputs})}, given, {attributes!r})
"""


def class_of(op: Operator) -> str:
    return f"{op.name[0].upper()}{op.name[1:]}Spec"


def _dict(values: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def _tables(kernels: dict[str, Operator], every: Sequence[Operator]) -> str:
    golden = "".join(f'        "{name}": "{name}",\n' for name in kernels)
    spec = "".join(f'    "{op.name}": "{class_of(op)}",\n' for op in every)
    return f'__golden__ = {{\n    "kernel": {{\n{golden}    }},\n}}\n__spec__ = {{\n{spec}}}\n'


# A team's ``golden.py`` as a device under test: its formula is called with a case's data, and judged like any device.

Form = Literal["kernel", "aclnn"]
FORMS: tuple[Form, ...] = ("kernel", "aclnn")


class GoldenFile:
    """The goldens of one file. ``form``: kernel or aclnn, if a file has both (default: kernel first)."""

    name = "golden_py"
    answers_status = True

    def __init__(self, *, file: str, form: str = "") -> None:
        if form not in ("", *FORMS):
            raise unknown("form", form, FORMS)
        self.path = Path(file)
        module = _imported(self.path)
        self.functions = {k: f for k, f in _functions(module, self.path).items() if form in ("", k[1])}
        if not self.functions:
            kernels = ", ".join(dict.fromkeys(op.kernel.name for op in OPERATORS.values() if op.kernel is not None))
            raise OracleError(
                f"{self.path}: no golden{f' of the {form} form' if form else ''} for an operator of this project; "
                f"__golden__ or __spec__ must name an aclnn operator or one of {kernels}"
            )
        content = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self.versions = {"golden_py": f"{self.path.name} sha256:{content[:12]}"}
        self.device = "cpu"

    def unsupported(self, call: Call) -> str | None:
        """Return why no golden can answer a call: a missing operator, a call to refuse, or a cast after the kernel."""
        if self._of(call) is None:
            known = ", ".join(sorted({op for op, _ in self.functions}))
            return f"{self.path.name} has no golden for {call.op}; it has: {known}"
        status = validate(call)
        if not status.ok:
            return f"a golden has no GetWorkspaceSize: a call that must be refused ({status.name}) does not apply to it"
        first = call.outputs[OPERATORS[call.op].output]
        if first is None:
            return "a golden gives every output; the first is not asked for"
        if not writes(call) and OPERATORS[call.op].attribute("mask") is not None:
            return "a golden gives every output; none is asked for"
        shape = first.shape
        if not writes(call) and not (_fits(call, shape) and _has_axis(call)):
            return "the host returns on an empty input before it looks at the rest; no kernel would see this call"
        computed = _promoted(call)
        for output in call.outputs.values():
            if output is not None and output.dtype != DTYPES[computed].numpy:
                return f"the host casts {computed} to {output.dtype} after the kernel; a golden ends before that"
        return None

    def run(self, call: Call) -> Status | None:
        """Call the golden and pass on its result unchanged."""
        outcome = self._of(call)
        if outcome is None:
            raise LookupError(f"{self.path.name} has no golden for {call.op}")
        form, function = outcome
        with np.errstate(all="ignore"):  # overflow and division by zero belong to the case
            results = _arrays((_kernel if form == "kernel" else _aclnn)(call, function), len(call.outputs))
        for (name, given), result in zip(tuple(call.outputs.items()), results, strict=True):
            if not writes(call) and result.size == 0:
                continue
            if given is not None and (result.shape, result.dtype) == (given.shape, given.dtype):
                given[...] = result
            else:
                call.outputs[name] = result
        return None

    def _of(self, call: Call) -> tuple[Form, Callable[..., Any]] | None:
        return next(
            ((form, self.functions[call.op, form]) for form in FORMS if (call.op, form) in self.functions), None
        )


# reading the file -----------------------------------------------------------------------------------------------------


def _imported(path: Path) -> Any:
    """Execute the file as a module of its own; it can import the modules next to it."""
    if not path.is_file():
        raise OracleError(f"golden_py: file={path}: no such file")
    name = f"aclnn_oracle_golden_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OracleError(f"golden_py: file={path}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.resolve().parent)
    sys.path.append(beside)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise OracleError(f"{path}: importing it failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(beside)
    return module


def _functions(module: Any, path: Path) -> dict[tuple[str, Form], Callable[..., Any]]:
    """Return the functions by operator and form; ``__spec__`` is the newer form and has priority."""
    result: dict[tuple[str, Form], Callable[..., Any]] = {}
    golden, spec = getattr(module, "__golden__", {}), module.__spec__
    spec = {} if isinstance(spec, ModuleSpec) else spec  # the import system's own __spec__
    for what, table in (("__golden__", golden), ("__spec__", spec)):
        if not isinstance(table, Mapping):
            raise OracleError(f"{path}: {what} is {type(table).__name__}; it must be a dict")
    for form in FORMS:
        for name, function in _entries(golden.get(form, {}), f"{path}: __golden__[{form!r}]"):
            for key in _keys(name):
                if key[1] == form:
                    result[key] = _resolved(module, function, f"{path}: __golden__[{form!r}][{name!r}]")
    for name, spec_class in spec.items():
        for key in _keys(str(name)):
            where = f"{path}: __spec__[{name!r}]"
            made = _resolved(module, spec_class, where)
            if not hasattr(made, "golden"):
                raise OracleError(f"{where} has no attribute golden")
            result[key] = _resolved(module, made.golden, f"{where}.golden")
    return result


def _entries(table: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(table, Mapping):
        raise OracleError(f"{where} is {type(table).__name__}; it must be a dict")
    return [(str(name), function) for name, function in table.items()]


def _keys(name: str) -> list[tuple[str, Form]]:
    """Return the operators and the form of a name; an empty list for an operator of other projects."""
    if kernels := operators_of_kernel(name):
        return [(op.name, "kernel") for op in kernels]
    operator = operator_named(name) if normalised_name(name).startswith("aclnn") else None
    return [] if operator is None else [(operator.name, "aclnn")]


def _resolved(module: Any, named: Any, where: str) -> Any:
    """Return the object of a name in the module, or the object itself."""
    result = getattr(module, named, None) if isinstance(named, str) else named
    if not callable(result):
        raise OracleError(f"{where} is {named!r}; it must name a function of the file")
    return result


# calling a golden -----------------------------------------------------------------------------------------------------


def _fits(call: Call, shape: tuple[int, ...]) -> bool:
    """Return whether a kernel could get an empty call: ascend950's checks accept it, and the shapes agree."""
    op = OPERATORS[call.op]
    if op.class_index is None:
        arrays = [call.inputs[p.name] for p in op.inputs() if not p.holds("nothing")]
        try:
            if np.broadcast_shapes(*(a.shape for a in arrays if a is not None)) != shape:
                return False
        except ValueError:
            return False
    return validate(replace(call, soc="ascend950")).ok


def _has_axis(call: Call) -> bool:
    """Return whether the call's axis exists in its main operand."""
    op = OPERATORS[call.op]
    axis, array = op.attribute("axis"), call.inputs[op.main]
    return axis is None or array is None or -array.ndim <= call.attrs[axis.name] < max(1, array.ndim)


def _promoted(call: Call) -> str:
    """Return the dtype to which the host casts all operands before the kernel."""
    arrays = [call.inputs[p.name] for p in OPERATORS[call.op].inputs() if p.holds("values")]
    return str(promoted(*(dtype_of(a.dtype).name for a in arrays if a is not None)))


def _kernel(call: Call, function: Callable[..., Any]) -> Any:
    op = OPERATORS[call.op]
    assert op.kernel is not None  # a golden of the kernel form was found by its name
    dtype = DTYPES[_promoted(call)].numpy
    arrays: list[Array | None] = []
    for name in op.kernel.inputs:
        array = call.inputs[name]
        if array is not None:
            array = np.ascontiguousarray(array).reshape(array.shape)  # a copy only if the view is not contiguous
            array = array.astype(dtype, copy=False) if op.by_name[name].holds("values") else array
        arrays.append(array)
    named = op.kernel.attributes.items()
    attrs = {kernel: kernel_value(op.by_name[name], call.attrs[name]) for kernel, (name, _) in named}
    return function(*arrays, **attrs, **_accepted(function, attrs, _context(call, op.kernel.inputs, arrays)))


def _aclnn(call: Call, function: Callable[..., Any]) -> Any:
    try:
        from ..backends.torch import from_numpy
    except ModuleNotFoundError as error:
        raise RuntimeError("an aclnn golden takes torch tensors, and PyTorch is not installed") from error
    names = OPERATORS[call.op].names("input")
    arrays = [call.inputs[name] for name in names]
    tensors = [None if a is None else from_numpy(a) for a in arrays]
    attrs = dict(call.attrs)
    return function(*tensors, **_accepted(function, {}, {**attrs, **_context(call, names, arrays)}))


def _context(call: Call, names: Sequence[str], arrays: Sequence[Array | None]) -> dict[str, Any]:
    """Return the arguments that ops-test-kit passes in addition to operands and attributes."""
    formats = tuple("ND" if (spec := call.specs.get(name)) is None else spec.format for name in names)
    shapes = tuple(None if a is None else a.shape for a in arrays)
    outputs = [output for output in call.outputs.values() if output is not None]
    output_shapes = tuple(output.shape for output in outputs)
    return {
        "input_dtypes": tuple(None if a is None else a.dtype.name for a in arrays),
        "input_shapes": shapes,
        "input_ori_shapes": shapes,
        "input_formats": formats,
        "input_ori_formats": formats,
        "output_dtypes": tuple(output.dtype.name for output in outputs),
        "output_shapes": output_shapes,
        "output_ori_shapes": output_shapes,
        "output_formats": ("ND",) * len(outputs),
        "output_ori_formats": ("ND",) * len(outputs),
        "full_soc_version": call.soc,
        "short_soc_version": call.soc,
        "testcase_name": call.case_id,
    }


def _accepted(function: Callable[..., Any], given: Mapping[str, Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offered arguments that a function takes by name."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return {k: v for k, v in offered.items() if k not in given}
    taken = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    return {k: v for k, v in offered.items() if k in taken and k not in given}


def _arrays(result: Any, count: int) -> list[Array]:
    """Return a golden's result, an output or a list of outputs, as a list of arrays."""
    results = result if isinstance(result, (list, tuple)) else [result]
    if len(results) != count:
        raise TypeError(f"the golden returned {len(results)} outputs; the operator has {count}")
    return [_array(outcome) for outcome in results]


def _array(result: Any) -> Array:
    if result is None:
        raise TypeError("the golden returned None")
    if hasattr(result, "detach"):
        from ..backends.torch import to_numpy

        return to_numpy(result.detach())
    return np.asarray(result)
