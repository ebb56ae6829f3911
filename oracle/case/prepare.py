"""The first step of a case: its memory, its data, and the answers that are right for it."""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
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

# The content of an output before a call: a number that no result equals, or one that spoils each result it is used in.
# Any poison shows a kernel that never writes an element. Only NaN and infinity show a kernel that clears its output by
# a product with 0. Only a large number shows a kernel that adds to the old content. Only 0 shows a kernel that keeps
# the old content if it is not 0. So the cases of a run take turns, by their ids. Guards always contain the pattern.

PATTERN, OTHER = "pattern", "other pattern"  # OTHER decides if a result may equal the first poison
ZERO = "zero"  # a kernel that adds to it or scales it is still right
KINDS = (PATTERN, "nan", "infinity", "largest", ZERO)
GUARD = 0xA5  # the byte of the pattern
_BYTES = {PATTERN: GUARD, OTHER: 0x5A}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def poison_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the kind of poison of a case's outputs: by the case's id if a right device computes all of them.

    If a right device leaves them alone, the pattern shows which bytes were written."""
    if not case.writes(soc, cann):
        return PATTERN
    return KINDS[zlib.crc32(case.id.encode()) % len(KINDS)]


@lru_cache(maxsize=256)
def word(kind: str, dtype: np.dtype[np.generic]) -> bytes:
    """Return the bytes of one poisoned element. Types other than floats and complex numbers get the pattern."""
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
    """One output tensor. The device sees ``view``; the rest of ``base`` are guards.

    ``first``: how many guards lie before the view. ``poison``: the kind that fills the view. Guards contain the
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
        """The content of a real element before it is written."""
        (element,) = np.frombuffer(word(self.poison, self.view.dtype), self.view.dtype)
        return float(element.real)

    def untouched(self) -> bool:
        """Return whether no byte was written."""
        return self.damaged() == 0 and bool(self.unwritten().all())

    def unwritten(self) -> Array:
        """Return a bool array of the view's shape: the elements that still contain the poison."""
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
        """Return how many damaged guard elements lie before the view's first element."""
        return self.first - int(np.count_nonzero(holding(PATTERN, self.base[: self.first])))


def is_like(result: object, wanted: Array) -> TypeGuard[Array]:
    """Return whether a device's result is an array of the wanted type and shape."""
    return isinstance(result, np.ndarray) and (result.dtype, result.shape) == (wanted.dtype, wanted.shape)


def sliced_axes(case: Case) -> list[int]:
    """Return the axes of a case's first output along which the operator works slice by slice in all outputs."""
    inputs, outputs = ({n: p.shape for n, p in some.items() if p is not None} for some in (case.inputs, case.outputs))
    return slice_axes(OPERATORS[case.op], inputs, outputs, case.attrs)


def _fill(view: Array, element: bytes) -> None:
    """Copy the bytes of one element to all elements, as integers: a bool or a NaN may change when it is assigned."""
    kind = view.dtype if view.itemsize > 8 else np.dtype(f"u{view.itemsize}")
    view.view(kind)[...] = np.frombuffer(element, kind)[0]


def holding(poison: str, array: Array) -> Array:
    """Return which elements of a contiguous vector contain a kind of poison in all their bytes."""
    width = min(array.itemsize, 8)
    wanted = np.frombuffer(word(poison, array.dtype), f"u{width}")
    parts = array.view(wanted.dtype)
    if width == array.itemsize:
        return np.asarray(parts == wanted[0])
    return np.asarray((parts.reshape(array.size, -1) == wanted).all(axis=1))


class Memory:
    """A call ready to run, with checks of its memory after the run."""

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
        self.under = dict(under or {})  # further conditions of the call's rules, by the names in the call
        self.inputs = dict(inputs)  # the device may replace entries of call.inputs, but not of this dict
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
        """Make the data of a case. ``under``: further conditions of the call's rules (``cann``). ``given``: data of
        some inputs that an earlier call made."""
        inputs, specs = make_inputs(case, seed=seed, given=given)
        return cls(case, soc, inputs, specs, under=under)

    def again(self, poison: str | None = None) -> Memory:
        """Return the same call for another run: inputs restored, new outputs, and another poison if one is given."""
        self.restore()
        return Memory(self.case, self.call.soc, self.inputs, self.call.specs, poison or self.poison, self.under)

    def restore(self) -> None:
        """Put the inputs' bytes back."""
        for name in self.changed_inputs():
            self._storage[name][...] = np.frombuffer(self._saved[name], np.uint8)

    def changed_inputs(self) -> list[str]:
        """Return the names of inputs with a changed storage, guards included."""
        return [n for n, storage in self._storage.items() if storage.tobytes() != self._saved[n]]


# ``--golden-cache DIR``: inputs, golden and bounds of cases, kept from one run to the next.
#
# The name of an entry depends on everything that decides its content: the case with its id, the seed, the scheme of
# seeds, the SoC and the CANN version. It also depends on the versions of the computing libraries and on this package's
# code. Any change gives another name, so an entry is never out of date. Entries with old names are not read any more.
# If the folder is full, the entry that was read longest ago goes first. An entry is written to a temporary file in the
# same folder and then moved, so that many processes can share it. Its checksum is verified on reading; a damaged entry
# is computed again.
#
# Operators from outside are not kept: this module does not know what their pages import.

FORM = b"aclnn-oracle golden 1\n"
LIMIT = 8 << 30  # bytes of a folder
LARGEST = 16  # an entry takes at most 1/16 of the folder
LOOK = 64  # entries written between two checks of the folder's size
_INPUT, _FIELD = "input ", "reference "  # prefixes of names in an entry


@dataclass
class GoldenCache:
    """A folder of entries. ``code``: the digest of the code that computes them."""

    folder: Path
    limit: int = LIMIT
    code: str = field(default_factory=code_digest)
    written: int = 0

    def path(self, case: Case, settings: Settings) -> Path:
        """Return the path of a case's entry, whether or not it exists."""
        decides = [case.id, case_to_json(case), settings.seed, SCHEME, settings.soc, settings.under, self.code, tools()]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}.golden"

    def load(self, case: Case, settings: Settings) -> tuple[Memory, dict[str, Reference]] | None:
        """Return a case's memory and references; None if there is no entry, or a damaged one."""
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
                output, _, part = name.removeprefix(_FIELD).partition(" ")
                result[output][part] = value
        return memory, {output: Reference(**given) for output, given in result.items()}

    def store(self, case: Case, settings: Settings, memory: Memory, references: Mapping[str, Reference]) -> None:
        """Keep a case's inputs, before a device has used them, and its references.

        Keep no entry if the code on disk changed after it was loaded: its digest would be wrong."""
        parts: dict[str, Any] = {_INPUT + name: memory_of(v) for name, v in memory.inputs.items() if v is not None}
        for output, reference in references.items():
            parts |= {f"{_FIELD}{output} {each.name}": getattr(reference, each.name) for each in fields(reference)}
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
        """Delete the entries that were read longest ago, while the folder is larger than its limit."""
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
    """Return the values that :func:`packed` packed; None if the checksum is wrong."""
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
    """Return the versions of the computing libraries: they change no bit, but the entry's name includes them."""
    return {name: version(name) for name in ("numpy", "ml_dtypes", "gmpy2")}


@cache
def cache_in(folder: str) -> GoldenCache:
    """Return this process's cache object for a folder."""
    return GoldenCache(Path(folder))


def cache_of(case: Case, settings: Settings) -> GoldenCache | None:
    """Return the cache that keeps a case. None without --golden-cache or for an operator from outside, and for a case
    that computes no values or uses a forward's results, which are the device's."""
    if settings.golden_cache is None or case.before is not None or not case.computes(settings.soc, settings.cann):
        return None
    return cache_in(settings.golden_cache) if OPERATORS[case.op].is_built_in else None


# The prepared case.


@dataclass(frozen=True)
class Prepared:
    """A case's data and references, made once and judged many times (the detection score runs many devices on it).

    ``references``: by the name of the output; empty if the call must be refused or checks only its status.
    """

    case: Case
    settings: Settings
    memory: Memory
    references: Mapping[str, Reference]

    @classmethod
    def make(cls, case: Case, settings: Settings, memory: Memory | None = None) -> Prepared:
        """Make the data, unless it is given, and the references. Raises OracleError if there is no reference."""
        memory = memory or Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        computes = case.computes(settings.soc, settings.cann)
        return cls(case, settings, memory, references_of(memory.call) if computes else {})

    @classmethod
    def kept(cls, case: Case, settings: Settings) -> Prepared | None:
        """Return the case as an earlier run made it; None if it is not in --golden-cache."""
        kept = cache_of(case, settings)
        result = None if kept is None else kept.load(case, settings)
        return None if result is None else cls(case, settings, *result)

    def keep(self) -> None:
        """Keep the case for later runs, before a device has it."""
        kept = cache_of(self.case, self.settings)
        if kept is not None and self.references:
            kept.store(self.case, self.settings, self.memory, self.references)

    def again(self, poison: str | None = None) -> Prepared:
        """Return the same case for another device: inputs restored, new outputs, and another poison if one is given."""
        return replace(self, memory=self.memory.again(poison))

    @property
    def expected(self) -> str:
        """The name of the status that a right device answers."""
        return self.case.expected(self.settings.soc, self.settings.cann)

    @cached_property
    def values(self) -> Mapping[str, Reference]:
        """The references of a call that computes values; empty for a refused call and for an empty input."""
        return {name: result for name, result in self.references.items() if result.written}

    @property
    def is_given(self) -> bool:
        """Whether a given function makes one of the values: then the strict layer does not judge all of them."""
        return any(reference.given for reference in self.values.values())


def uninformative(case: Case, values: Mapping[str, Reference]) -> str:
    """Say why a case proves nothing ("" if it proves something, or declares the reason itself)."""
    if case.uninformative or not values:
        return ""
    reasons = {name: verdict.uninformative(reference) for name, reference in values.items()}
    if not all(reasons.values()):
        return ""
    text = "; ".join(reason if len(reasons) == 1 else f"{name}: {reason}" for name, reason in reasons.items())
    return f"{NO_PROOF}{text}; change its data, or say why with uninformative:"
