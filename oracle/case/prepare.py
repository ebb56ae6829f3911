"""The first step of a case: its memory, its data, and what a right device may answer to it."""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from .. import verdict
from ..catalogue.data.case import Case, TensorPlan, make_inputs, specs_of
from ..catalogue.data.generators.streams import SCHEME
from ..catalogue.data.layout import allocate
from ..catalogue.portable import case_to_json
from ..model.call import Array, Call, TensorSpec, memory_of, strides_of
from ..model.dtypes import DTYPES, FORMATS, find
from ..operators import OPERATORS, Reference, references as references_of
from ..operators.answers.parts import slice_axes
from ..record.types import NO_PROOF
from ..settings.settings import Settings
from ..system.cache import code_digest, code_is_as_loaded, opened, recalled, sealed, shrink, store

# The memory of one call: poisoned outputs between guards, and inputs that must not change.

# What the memory of an output holds before a call: a number that no result is, or one that spoils what it meets.
# A kernel that never writes an element shows with any poison. One that clears its output by a product with 0 shows
# beside NaN and infinity alone, one that adds to what is there beside a large number, one that keeps what is not 0
# beside 0. So the cases of a run take turns, each by its id; guards always hold the pattern.

PATTERN, OTHER = "pattern", "other pattern"  # OTHER decides where a result may be the first poison
ZERO = "zero"  # what a kernel may add to or scale, and be right
KINDS = (PATTERN, "nan", "infinity", "largest", ZERO)
GUARD = 0xA5  # the byte of the pattern
_BYTES = {PATTERN: GUARD, OTHER: 0x5A}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def poison_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the kind of poison of a case's outputs: by its id where a right device computes all of them. Where it
    leaves them alone, the pattern tells what was written."""
    if not case.writes(soc, cann):
        return PATTERN
    return KINDS[zlib.crc32(case.id.encode()) % len(KINDS)]


@lru_cache(maxsize=256)
def word(kind: str, dtype: np.dtype[np.generic]) -> bytes:
    """Return the bytes of one poisoned element; types other than floats and complex numbers have the pattern."""
    result = find(dtype)
    name = "" if result is None else _PARTS.get(result.name, result.name)
    if kind in _BYTES or name not in FORMATS:
        return bytes([_BYTES.get(kind, _BYTES[PATTERN])]) * dtype.itemsize
    part, row = DTYPES[name].numpy, FORMATS[name]
    value = {"nan": np.nan, "infinity": np.inf, "largest": row.max, ZERO: 0.0}[kind]
    one = np.array([value], np.float64).astype(part)
    if kind == "nan":  # with a payload that no arithmetic gives
        one.view(f"u{part.itemsize}")[...] |= int.from_bytes(bytes([GUARD]) * part.itemsize, "little") % 2**row.mant
    return one.tobytes() * (dtype.itemsize // part.itemsize)


@dataclass
class Output:
    """One output tensor: ``view`` is what the device sees, the rest of ``base`` are guards.

    ``first``: how many guards lie before the view. ``poison``: the kind that the view is filled with; guards have the
    pattern.
    """

    base: Array
    view: Array
    first: int
    poison: str = PATTERN

    @classmethod
    def make(cls, plan: TensorPlan, poison: str = PATTERN) -> Output:
        buffer = allocate(plan.shape, plan.dtype, plan.view)
        output = cls(buffer.base, buffer.view, buffer.guard + buffer.layout.offset, poison)
        output.clear()
        return output

    def clear(self) -> None:
        """Write the pattern into the guards and the poison into the elements."""
        self.bytes[...] = GUARD
        if self.poison != PATTERN:
            _fill(self.view, word(self.poison, self.view.dtype))

    @property
    def bytes(self) -> Array:
        return np.asarray(self.base.view(np.uint8))

    @property
    def held(self) -> float:
        """What a real element holds until it is written."""
        (element,) = np.frombuffer(word(self.poison, self.view.dtype), self.view.dtype)
        return float(element.real)

    def untouched(self) -> bool:
        """Whether not one byte was written."""
        return self.damaged() == 0 and bool(self.unwritten().all())

    def unwritten(self) -> Array:
        """Return a bool array of the view's shape: the elements that still hold the poison."""
        view = self.view
        if not view.size:
            return np.zeros(view.shape, bool)
        return np.asarray(holding(self.poison, np.ascontiguousarray(view).reshape(-1)).reshape(view.shape))

    def damaged(self) -> int:
        """Return how many guard elements lost their pattern."""
        first = self.first
        if self.view.flags.c_contiguous:
            parts = self.base[:first], self.base[first + self.view.size :]
            if all(part.tobytes().count(GUARD) == part.nbytes for part in parts):
                return 0
            return sum(part.size - int(np.count_nonzero(holding(PATTERN, part))) for part in parts)
        whole = holding(PATTERN, self.base)
        np.ndarray(self.view.shape, bool, whole.data, first, strides_of(self.view))[...] = True  # no guards
        return whole.size - int(np.count_nonzero(whole))

    def damaged_before(self) -> int:
        """Return how many of them lie before the view's first element."""
        return self.first - int(np.count_nonzero(holding(PATTERN, self.base[: self.first])))


def is_like(result: object, wanted: Array) -> TypeGuard[Array]:
    """Whether a device's result is an array of the wanted type and shape."""
    return isinstance(result, np.ndarray) and (result.dtype, result.shape) == (wanted.dtype, wanted.shape)


def sliced_axes(case: Case) -> list[int]:
    """Return the axes of a case's first output along which the operator works slice by slice, further outputs too."""
    inputs, outputs = ({n: p.shape for n, p in some.items() if p is not None} for some in (case.inputs, case.outputs))
    return slice_axes(OPERATORS[case.op], inputs, outputs, case.attrs)


def _fill(view: Array, element: bytes) -> None:
    """Put the bytes of one element into all; as an integer, for a bool or a NaN may change on its way."""
    kind = view.dtype if view.itemsize > 8 else np.dtype(f"u{view.itemsize}")
    view.view(kind)[...] = np.frombuffer(element, kind)[0]


def holding(poison: str, array: Array) -> Array:
    """Return which elements of a contiguous vector hold a kind of poison in all their bytes."""
    width = min(array.itemsize, 8)
    wanted = np.frombuffer(word(poison, array.dtype), f"u{width}")
    parts = array.view(wanted.dtype)
    if width == array.itemsize:
        return np.asarray(parts == wanted[0])
    return np.asarray((parts.reshape(array.size, -1) == wanted).all(axis=1))


class Memory:
    """A call ready to run, and what must be true of its memory afterwards."""

    def __init__(
        self,
        case: Case,
        soc: str,
        inputs: Mapping[str, Any],
        specs: Mapping[str, TensorSpec],
        poison: str | None = None,
        under: Mapping[str, str] | None = None,
    ) -> None:
        self.case = case
        self.under = dict(under or {})  # what else the call's rules depend on, by the call's names
        self.inputs = dict(inputs)  # the device may replace entries of call.inputs, not of this
        self.outputs: dict[str, Output] = {}
        self.poison = poison or poison_of(case, soc, self.under.get("cann", ""))
        outputs: dict[str, Any] = {}
        for name, plan in case.outputs.items():
            if plan is None or plan.spec_only:
                outputs[name] = None if plan is None else specs[name]
            else:
                self.outputs[name] = Output.make(plan, self.poison)
                outputs[name] = self.outputs[name].view
        self.call = Call(case.op, soc, dict(inputs), dict(case.attrs), outputs, specs, case.null, case.id, **self.under)
        self._storage = {n: memory_of(v) for n, v in self.inputs.items() if isinstance(v, np.ndarray)}
        self._saved = {n: storage.tobytes() for n, storage in self._storage.items()}

    @classmethod
    def make(
        cls,
        case: Case,
        *,
        soc: str,
        seed: int,
        under: Mapping[str, str] | None = None,
        given: Mapping[str, Array] | None = None,
    ) -> Memory:
        """Make the data of a case. ``under``: what else the call's rules depend on (``cann``); ``given``: the data of
        some inputs, where a call before this one made them."""
        inputs, specs = make_inputs(case, seed=seed, given=given)
        return cls(case, soc, inputs, specs, under=under)

    def again(self, poison: str | None = None) -> Memory:
        """Return the same call with its inputs restored and new outputs, for another run; with another poison where
        one is given."""
        self.restore()
        return Memory(self.case, self.call.soc, self.inputs, self.call.specs, poison or self.poison, self.under)

    def restore(self) -> None:
        """Put the inputs' bytes back."""
        for name in self.changed_inputs():
            self._storage[name][...] = np.frombuffer(self._saved[name], np.uint8)

    def changed_inputs(self) -> list[str]:
        """Return the names of inputs whose storage, guards included, no longer holds what it held."""
        return [n for n, storage in self._storage.items() if storage.tobytes() != self._saved[n]]


# ``--golden-cache DIR``: inputs, golden and bounds of cases, kept from one run to the next.
#
# An entry is named by everything that decides it: the case with its id, the seed and the scheme of seeds, the SoC, the
# version of CANN, the versions of the libraries that compute, and the code of this package. Whatever changes gives
# another name, so an entry is never out of date; it is only not asked for any more, and goes when the folder is full
# (the entry goes first that was read longest ago). An entry is written beside its place and moved there, so that many
# processes may share a folder; its checksum is verified when it is read, and a damaged one is computed again.
#
# Operators from outside are not kept: what their pages import is not known here.

FORM = b"aclnn-oracle golden 1\n"
LIMIT = 8 << 30  # bytes of a folder
LARGEST = 16  # an entry takes at most this part of the folder
LOOK = 64  # entries written between two looks at the folder's size
_INPUT, _FIELD = "input ", "reference "  # before a name, in an entry


@dataclass
class GoldenCache:
    """A folder of entries. ``code``: the digest of what computes them."""

    folder: Path
    limit: int = LIMIT
    code: str = ""
    written: int = 0

    def __post_init__(self) -> None:
        self.code = self.code or code_digest()

    def path(self, case: Case, settings: Settings) -> Path:
        """Return where the entry of a case lies, if there is one."""
        decides = [case.id, case_to_json(case), settings.seed, SCHEME, settings.soc, settings.under, self.code, tools()]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}.golden"

    def load(self, case: Case, settings: Settings) -> tuple[Memory, dict[str, Reference]] | None:
        """Return a case's memory and references, None where they are not kept, or not as they were written."""
        path = self.path(case, settings)
        content = recalled(path)
        if content is None:
            return None
        arrays = unpacked(content)
        if arrays is None:
            path.unlink(missing_ok=True)
            return None
        inputs: dict[str, Any] = {}
        for name, plan in case.inputs.items():
            buffer = None if plan is None else allocate(plan.shape, plan.dtype, plan.view)
            inputs[name] = buffer and buffer.view
            if buffer is not None:
                memory_of(buffer.view)[...] = arrays[_INPUT + name]
        memory = Memory(case, settings.soc, inputs, specs_of(case), under=settings.under)
        result: dict[str, dict[str, Any]] = {output: {} for output in case.outputs}
        for name, value in arrays.items():
            if name.startswith(_FIELD):
                output, _, field = name.removeprefix(_FIELD).partition(" ")
                result[output][field] = value
        return memory, {output: Reference(**given) for output, given in result.items()}

    def store(self, case: Case, settings: Settings, memory: Memory, references: Mapping[str, Reference]) -> None:
        """Keep a case's inputs, which no device has had yet, and its references; nothing where the code that made them
        is not what its digest says any more."""
        parts: dict[str, Any] = {_INPUT + name: memory_of(v) for name, v in memory.inputs.items() if v is not None}
        for output, reference in references.items():
            parts |= {f"{_FIELD}{output} {field.name}": getattr(reference, field.name) for field in fields(reference)}
        content = packed(parts)
        if len(content) * LARGEST > self.limit or not code_is_as_loaded():
            return
        path = self.path(case, settings)
        try:
            store(path, content)
        except OSError as error:
            warnings.warn(f"--golden-cache {self.folder}: cannot be written: {error.strerror or error}", stacklevel=2)
            return
        self.written += 1
        if self.written % LOOK == 1:
            self.shrink()

    def shrink(self) -> None:
        """Delete what was read longest ago where the folder holds more than its limit."""
        shrink(self.folder.glob("??/*"), self.limit, cost=lambda status: status.st_size)


def packed(values: Mapping[str, Any]) -> bytes:
    """Return arrays and plain values as an entry: a line that describes them, their bytes, a checksum of both."""
    head, data = [], []
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            known = next((row.name for row in DTYPES.values() if row.numpy == value.dtype), value.dtype.str)
            head.append([name, known, list(value.shape)])
            data.append(np.ascontiguousarray(value).tobytes())
        else:
            head.append([name, "", value])
    return sealed(b"".join([FORM, json.dumps(head).encode(), b"\n", *data]))


def unpacked(content: bytes) -> dict[str, Any] | None:
    """Return what :func:`packed` packed; None where the checksum says that it is something else."""
    body = opened(content)
    if body is None or not body.startswith(FORM):
        return None
    end = body.index(b"\n", len(FORM))
    values: dict[str, Any] = {}
    at = end + 1
    for name, dtype, value in json.loads(body[len(FORM) : end]):
        if not dtype:
            values[name] = value
            continue
        array: Array = np.zeros(value, DTYPES[dtype].numpy if dtype in DTYPES else dtype)
        if array.size:
            array.reshape(-1).view(np.uint8)[...] = np.frombuffer(body, np.uint8, array.nbytes, at)
        values[name], at = array, at + array.nbytes
    return values


@cache
def tools() -> dict[str, str]:
    """The libraries that compute: they change no bit, and are named all the same."""
    return {name: version(name) for name in ("numpy", "ml_dtypes", "gmpy2")}


@cache
def cache_in(folder: str) -> GoldenCache:
    """Return this process's view of a folder."""
    return GoldenCache(Path(folder))


def cache_of(case: Case, settings: Settings) -> GoldenCache | None:
    """Return where a case is kept: nowhere without --golden-cache, after a forward, whose results are the device's, or
    if what computes it is not known."""
    if settings.golden_cache is None or case.before is not None or not case.computes(settings.soc, settings.cann):
        return None
    return cache_in(settings.golden_cache) if OPERATORS[case.op].is_built_in else None


# The first step of a case: its data, and what a right device may answer to it.


@dataclass(frozen=True)
class Prepared:
    """A case's data and reference, made once and judged many times (the detection score runs many devices on it).

    ``references``: of each output, by its name; none where the call must be refused, or asks for its status alone.
    """

    case: Case
    settings: Settings
    memory: Memory
    references: Mapping[str, Reference]

    @classmethod
    def make(cls, case: Case, settings: Settings, memory: Memory | None = None) -> Prepared:
        """Make the data, unless it is given, and the reference. Raises OracleError where there is no reference."""
        memory = memory or Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        computes = case.computes(settings.soc, settings.cann)
        return cls(case, settings, memory, references_of(memory.call) if computes else {})

    @classmethod
    def kept(cls, case: Case, settings: Settings) -> Prepared | None:
        """Return the case as an earlier run made it, None where it is not in --golden-cache."""
        kept = cache_of(case, settings)
        result = None if kept is None else kept.load(case, settings)
        return None if result is None else cls(case, settings, *result)

    def keep(self) -> None:
        """Keep the case for later runs, before a device has it."""
        kept = cache_of(self.case, self.settings)
        if kept is not None and self.references:
            kept.store(self.case, self.settings, self.memory, self.references)

    def again(self, poison: str | None = None) -> Prepared:
        """Return the same case with its inputs restored and a new output, for another device; beside another poison
        where one is given."""
        return replace(self, memory=self.memory.again(poison))

    @property
    def expected(self) -> str:
        """The name of the status that a right device answers."""
        return self.case.expected(self.settings.soc, self.settings.cann)

    @cached_property
    def values(self) -> Mapping[str, Reference]:
        """The references of a call that computes something; none of a refused call and for an empty input."""
        return {name: result for name, result in self.references.items() if result.written}

    @property
    def is_given(self) -> bool:
        """Whether a given function makes one of the values, so that the strict layer does not judge all of them."""
        return any(reference.given for reference in self.values.values())


def uninformative(prepared: Prepared) -> str:
    """Say why a case proves nothing ("" if it proves something, or says itself why not)."""
    if prepared.case.uninformative or not prepared.values:
        return ""
    reasons = {name: verdict.uninformative(values) for name, values in prepared.values.items()}
    if not all(reasons.values()):
        return ""
    text = "; ".join(reason if len(reasons) == 1 else f"{name}: {reason}" for name, reason in reasons.items())
    return f"{NO_PROOF}{text}; change its data, or say why with uninformative:"
