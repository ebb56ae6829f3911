"""A case, and the functions that make its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...model.aclnn import CANN, NEWEST, SUCCESS
from ...model.call import Array, Call, TensorSpec
from ...model.dtypes import DTYPES, FORMATS
from ...model.errors import OracleError, require_memory
from ...numerics.floats.codes import code, codes, has_nan
from ...numerics.floats.environment import ieee_arithmetic
from ...numerics.floats.rounding import rounded_once, unify_nans
from .generators import GENERATORS, MODIFIERS
from .generators.streams import Stream
from .layout import Buffer, allocate, arrange, describe

TIERS = ("smoke", "standard", "full")  # each contains the ones before it
_LARGE = 1 << 24  # elements of a tensor whose memory counts
HUGE = "huge"  # a tier of its own: tensors beyond the reach of a 32-bit index; planned only if it is requested


@dataclass(frozen=True)
class TensorPlan:
    """The plan of one tensor of a case.

    ``data`` names a generator and its parameters (``{"gen": "uniform", "low": -5, "high": 5}``); None for outputs.
    ``view`` names the memory layout (``contiguous``, ``transposed``, ``strided``, ``expanded``, ``offset`` ...).
    ``spec_only``: no array, only the arguments of aclCreateTensor. The case must be refused, or asks for a status only.
    """

    shape: tuple[int, ...]
    dtype: str
    data: Mapping[str, Any] | None = None
    view: str = "contiguous"
    format: str = "ND"
    storage_shape: tuple[int, ...] | None = None
    spec_only: bool = False


@dataclass(frozen=True)
class Case:
    """One case. ``id`` is built from names and parameters only, and it seeds the data."""

    id: str
    op: str  # aclnn name
    family: str
    why: str
    tier: str
    dtype: str  # the main dtype, for the report's matrix
    inputs: Mapping[str, TensorPlan | None]  # None: a null pointer
    attrs: Mapping[str, Any]
    outputs: Mapping[str, TensorPlan | None]
    expect: Mapping[str, str] = field(default_factory=dict)  # SoC, SoC@first CANN version, or "default" -> status name
    soc: tuple[str, ...] = ()  # empty: every SoC
    null: frozenset[str] = frozenset()  # null workspaceSize / executor
    uninformative: str = ""  # why an all-equal or non-finite golden is intended
    source: str = ""  # file:line
    authority: str = ""  # the authority of its family, if that is not the document
    before: Case | None = None  # a case of the forward operator; its results are operands of this gradient

    @property
    def marks(self) -> tuple[str, ...]:
        """The names by which ``-m`` can select a case: operator slug, dtype, family and tier."""
        slug, _, rest = self.id.partition("/")
        names = (slug, self.dtype, rest.partition("[")[0], self.tier)
        return tuple(name for name in dict.fromkeys(names) if name and not name.startswith("_"))

    def expected(self, soc: str, cann: str = "") -> str:
        """Return the name of the status that GetWorkspaceSize must give on a SoC under a CANN version ("": newest)."""
        if not self.expect:
            return SUCCESS.name
        upto = CANN[: CANN.index(cann or NEWEST) + 1]
        keys = (*(f"{soc}@{since}" for since in reversed(upto)), soc, "default")
        return next((self.expect[key] for key in keys if key in self.expect), SUCCESS.name)

    def refused(self, soc: str) -> bool:
        """Return whether a SoC refuses the call under at least one version of CANN."""
        return any(self.expected(soc, cann) != SUCCESS.name for cann in CANN)

    @property
    def plans(self) -> dict[str, TensorPlan]:
        """The plan of every tensor that is not a null pointer, by name."""
        return {name: plan for name, plan in {**self.inputs, **self.outputs}.items() if plan is not None}

    @cached_property
    def asks_status(self) -> bool:
        """Whether the case only asks for the status of GetWorkspaceSize: it has no data, and no output is computed."""
        return any(plan.spec_only for plan in self.plans.values())

    def computes(self, soc: str, cann: str = "") -> bool:
        """Return whether a correct device of a SoC accepts the call and computes it."""
        return self.expected(soc, cann) == SUCCESS.name and not self.asks_status

    def is_on(self, soc: str) -> bool:
        """Return whether the case is planned on a SoC."""
        return not self.soc or soc in self.soc

    def writes(self, soc: str, cann: str = "") -> bool:
        """Return whether a correct device of a SoC writes all outputs: it computes, and no tensor is empty."""
        return self.computes(soc, cann) and not any(0 in plan.shape for plan in self.plans.values())

    @property
    def output(self) -> TensorPlan | None:
        """The plan of the (first) output."""
        return next(iter(self.outputs.values()))


# The data of a case: the same case, seed and parameter give the same bytes on every machine.

_NOT_ITS_OWN = frozenset(("gen", *(p.name for p in MODIFIERS)))  # keys that are not parameters of the generator


def require_room(case: Case) -> None:
    """Raise OracleError if the large tensors of a case, and their numbers while they are made in float64, exceed the
    memory."""
    made = [plan for plan in case.plans.values() if not plan.spec_only and math.prod(plan.shape) >= _LARGE]
    if not made:
        return
    sizes = [math.prod(stored_shape(plan.shape, plan.view)) for plan in made]
    needed = sum(n * DTYPES[plan.dtype].numpy.itemsize for n, plan in zip(sizes, made, strict=True)) + 8 * max(sizes)
    largest = max((plan.shape for plan in made), key=math.prod)
    require_memory(needed, f"{case.source}: {case.id}: {case.op} with a tensor of shape {largest}")


@ieee_arithmetic
def make_inputs(
    case: Case, *, seed: int, given: Mapping[str, Array] | None = None
) -> tuple[dict[str, Any], dict[str, TensorSpec]]:
    """Return the inputs of a case (arrays; TensorSpec if no data is needed; None), and the specs of all its tensors.

    Arrays are views of buffers. The other elements of a buffer are guards: nan in floating-point buffers, else 0.
    ``specs`` contains outputs too. ``given``: data of some inputs, made by an earlier call.
    Raises OracleError with the case's place in the catalogue.
    """
    inputs: dict[str, Any] = {}
    if case.before is not None and given is None:
        raise OracleError(f"{case.id}: its operands are what a device gives: only run and replay have one")
    require_room(case)
    for name, plan in case.inputs.items():
        try:
            if plan is None or plan.spec_only or plan.data is None:
                inputs[name] = plan and spec_of_plan(plan)
            else:
                inputs[name] = _made(plan, case.id, name, seed, (given or {}).get(name)).view
        except OracleError as error:
            raise OracleError(f"{case.source}: {case.id}: {name}: {error}") from None
    return inputs, specs_of(case)


def specs_of(case: Case) -> dict[str, TensorSpec]:
    """Return the TensorSpec of every tensor of a case that is not a null pointer."""
    return {name: spec_of_plan(plan) for name, plan in case.plans.items()}


def call_for_golden(case: Case, soc: str, inputs: Mapping[str, Any]) -> Call:
    """Return the call of a case with its data, for a golden. Outputs are specs, of the written outputs only."""
    specs = specs_of(case)
    outputs = {name: specs[name] for name in case.outputs if name in specs}
    return Call(case.op, soc, dict(inputs), dict(case.attrs), dict(outputs), specs, case.null)


def spec_of_plan(plan: TensorPlan) -> TensorSpec:
    """Return the arguments of aclCreateTensor for a planned tensor."""
    return describe(plan.shape, plan.dtype, plan.view, plan.format, plan.storage_shape)


def arguments_of(attrs: Mapping[str, Any], plans: Mapping[str, TensorPlan | None]) -> dict[str, Any]:
    """Return the arguments of ``oracle.validate`` for planned tensors and attributes."""
    return {**{name: plan and spec_of_plan(plan) for name, plan in plans.items()}, **attrs}


def arguments(case: Case) -> dict[str, Any]:
    """Return the arguments of ``oracle.validate`` for a case."""
    return {**arguments_of(case.attrs, {**case.inputs, **case.outputs}), **dict.fromkeys(case.null)}


def _made(plan: TensorPlan, case_id: str, name: str, seed: int, given: Array | None = None) -> Buffer:
    """Return a planned tensor inside its guarded buffer, with the ``given`` data or else generated data."""
    buffer = allocate(plan.shape, plan.dtype, plan.view)
    if DTYPES[plan.dtype].kind in ("float", "narrow"):
        codes(buffer.base).fill(code(buffer.base.dtype, np.nan))  # ml_dtypes would fill the elements one by one
    stored = stored_shape(plan.shape, plan.view)
    target = buffer.view if stored == plan.shape else _once(buffer.view, stored)
    if given is None:
        given = _values(plan.data or {}, stored, plan.dtype, case_id, name, seed).reshape(stored)
    target[...] = _once(given, stored)
    return buffer


def _values(data: Any, shape: tuple[int, ...], dtype: str, case_id: str, name: str, seed: int) -> Array:
    """Return generated values as a contiguous array of the dtype."""
    stream = Stream(seed, case_id, data.get("stream") or name)
    parameters = {k: v for k, v in data.items() if k not in _NOT_ITS_OWN}
    values = GENERATORS[data["gen"]].make(stream, shape, dtype, **parameters)
    if data.get("scale", 1.0) != 1.0:
        values = values * float(data["scale"])
    if data.get("outliers"):
        values = outliers(values, float(data["outliers"]), dtype, Stream(seed, case_id, f"{name}:outliers"))
    stored = store(values, dtype)
    size = math.prod(shape)
    for index, value in data.get("spots", ()):
        if size:
            if not -size <= index < size:
                raise OracleError(f"spot {index} lies outside a tensor of {size} elements")
            stored[index] = store(np.asarray([value], np.int64 if isinstance(value, int) else np.float64), dtype)[0]
    return stored.reshape(shape)


make_buffer, make_values = ieee_arithmetic(_made), ieee_arithmetic(_values)


def outliers(values: Array, factor: float, dtype: str, stream: Stream) -> Array:
    """Multiply max(1, n / 1000) distinct random values by a factor (commercial_standard.md, generation). The factor is
    reduced if a product would exceed the largest number of the dtype."""
    values = values.astype(np.float64)
    n = values.size
    if n:
        places = np.argsort(stream.raw(n), kind="stable")[: max(1, n // 1000)]
        reach = float(np.max(np.abs(values[places])))
        values[places] *= min(factor, FORMATS[dtype].max / reach) if dtype in FORMATS and reach else factor
    return values


_ROUNDED = frozenset(("float16", "bfloat16", "float32", "float64"))


def store(values: Array, dtype: str) -> Array:
    """Store float64 or int64 values in a dtype: floats are rounded once, integers must fit exactly."""
    row = DTYPES[dtype]
    if row.name in _ROUNDED:
        values = values.astype(np.float64, copy=False)
        rounded = rounded_once(values, row)
        if has_nan(values):
            unify_nans(rounded)
        return rounded
    with np.errstate(over="ignore", invalid="ignore"):
        stored = values.astype(row.numpy)
    if row.kind in ("int", "uint") and math.prod(values.shape):
        exact = np.asarray(stored.astype(np.int64) == values)
        if not exact.all():
            raise OracleError(f"value {values[~exact][0]} does not fit into {dtype}")
    return np.asarray(stored)


def stored_shape(shape: tuple[int, ...], view: str) -> tuple[int, ...]:
    """Return the shape of the distinct elements: an axis of stride 0 has length 1."""
    if not view.startswith(("expanded", "repeated", "as:")):
        return shape
    return tuple(min(1, n) if s == 0 else n for n, s in zip(shape, arrange(shape, view).strides, strict=True))


def _once(view: Array, stored: tuple[int, ...]) -> Array:
    return view[tuple(slice(0, n) for n in stored)]
