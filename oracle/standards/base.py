"""Common parts of all accuracy standards: the verdict, the options, the arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from ..model.call import IS_MASKED
from ..model.dtypes import DTYPES, FORMATS, DType, FloatFormat, find
from ..model.errors import OracleError, unknown

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """The result of a standard for one output.

    ``metrics`` contains the standard's numbers by the names used in the field. A bool is 0.0 or 1.0. A number that does
    not exist, such as the cosine of one element, is absent. ``reason`` is empty on a plain pass; otherwise it names
    every broken rule, or the standard's own word (``Warning``, ``SKIP``, ``INVESTIGATE``).
    """

    passed: bool
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Option:
    """An option of a standard: its default, the rule for a value (in words), and the conversion that checks it.

    ``convert`` accepts a value from Python or a string from a command line and raises TypeError or ValueError.
    """

    default: Any
    rule: str
    convert: Callable[[Any], Any]


def flag(default: bool) -> Option:
    """Return an option that is true or false."""

    def convert(value: Any) -> bool:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]

    return Option(default, "true or false", convert)


def choice(default: str, *names: str) -> Option:
    """Return an option that is one of a closed list of names."""
    known = (default, *names)

    def convert(value: Any) -> str:
        if value not in known:
            raise ValueError
        return str(value)

    return Option(default, f"one of {', '.join(known)}", convert)


def number(default: float | None) -> Option:
    """Return an option that is a number not below zero: ``0.5``, or in ATK's notation ``"2**-8"``."""

    def convert(value: Any) -> float | None:
        if value is None and default is None:
            return None
        power = re.fullmatch(r"\s*2\s*\*\*\s*\(?\s*([+-]?\d{1,4})\s*\)?\s*", value) if isinstance(value, str) else None
        result = 2.0 ** int(power[1]) if power else float(value)
        if isinstance(value, bool) or not result >= 0:
            raise ValueError
        return result

    return Option(default, 'a number not below 0 (0.001, "2**-8")', convert)


def count(default: int | None) -> Option:
    """Return an option that is a count: an integer from 0 on."""

    def convert(value: Any) -> int | None:
        if value is None and default is None:
            return None
        result = int(value, 10) if isinstance(value, str) else int(value.__index__())
        if isinstance(value, bool) or result < 0:
            raise ValueError
        return result

    return Option(default, "an integer not below 0", convert)


# The dtypes of outputs: their kind is float, int, uint or bool.
OUTPUT_TYPES: dict[str, DType] = {
    **{name: replace(DTYPES[name], kind="float") for name in FORMATS if name in DTYPES},
    "hifloat32": replace(DTYPES["float32"], name="hifloat32"),
    **{name: dtype for name, dtype in DTYPES.items() if dtype.is_whole},
}


@dataclass(frozen=True)
class Sample:
    """The arrays of one judgement, all of ``shape``: actual and third of ``dtype``, golden real.

    The golden of a float output contains float64 values (any narrower float or integer array is read as such). The
    golden of an integer output contains integers.
    """

    dtype: DType
    golden: Array
    actual: Array
    third: Array | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.golden.shape)

    @property
    def size(self) -> int:
        return self.golden.size

    @property
    def format(self) -> FloatFormat:
        return self.dtype.format

    def index(self, flat: int) -> list[int]:
        """Return the index of a flat position, for a message."""
        return [int(i) for i in np.unravel_index(flat, self.shape)] if self.shape else []


@dataclass(frozen=True)
class Standard:
    """An accuracy standard: its rule and the inputs that it accepts.

    ``rule(sample, **options)`` judges. ``kinds`` are the kinds of dtype that the standard is defined for. ``dtypes``,
    if given, are the only dtypes with numbers. ``third``: the standard compares with a third party.
    """

    name: str
    rule: Callable[..., Verdict]
    kinds: tuple[str, ...] = ("float",)
    dtypes: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    third: bool = False

    def judge(self, golden: Any, actual: Any, dtype: Any, third: Any, options: Mapping[str, Any]) -> Verdict:
        """Check the arguments and apply the rule; see ``oracle.standards.judge``."""
        kind = self._output_type(dtype)
        settings = self.settings(options)
        golden = self._golden(golden, kind)
        third = self._third(third, golden.shape, kind)
        actual = _array(self.name, "actual", actual)
        if actual.shape != golden.shape:
            return Verdict(False, {}, f"actual has shape {actual.shape}, the golden {golden.shape}")
        if _native(actual.dtype) != kind.numpy:
            return Verdict(False, {}, f"actual is {actual.dtype}, the output's dtype {kind.name}{_container(kind)}")
        return self.rule(Sample(kind, golden, actual, third), **settings)

    def _output_type(self, dtype: Any) -> DType:
        kind = _output_type(dtype)
        if kind is None:
            raise unknown(f"dtype for standard {self.name!r}:", dtype, OUTPUT_TYPES)
        if kind.kind not in self.kinds or (self.dtypes and kind.name not in self.dtypes):
            known = self.dtypes or [t.name for t in OUTPUT_TYPES.values() if t.kind in self.kinds]
            hint = "; integers are judged by binary, integer or quantized" if kind.is_whole else ""
            raise OracleError(
                f"standard {self.name!r}: dtype {kind.name!r} is outside its rule, which is defined for"
                f" {', '.join(known)}{hint}"
            )
        return kind

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option's value, checked and converted; OracleError for an unknown option or a wrong value."""
        settings = {name: option.default for name, option in self.options.items()}
        for name, value in options.items():
            if name not in self.options:
                raise unknown(f"option of standard {self.name!r}:", name, self.options or "none, it takes no option")
            try:
                settings[name] = self.options[name].convert(value)
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
                rule = self.options[name].rule
                raise OracleError(f"standard {self.name!r}: option {name}={value!r} must be {rule}") from None
        return settings

    def _golden(self, value: Any, kind: DType) -> Array:
        golden = _array(self.name, "golden", value)
        source = _output_type(golden.dtype)
        if source is None:
            raise OracleError(
                f"standard {self.name!r}: golden is {golden.dtype}; it must be float64 for a float output and an"
                " integer or bool array for an integer one"
            )
        return golden if not kind.is_whole or golden.dtype == kind.numpy else self._integral(golden, kind)

    def _integral(self, golden: Array, kind: DType) -> Array:
        """Convert the golden of an integer output to that type; OracleError if a value changes or may be rounded."""
        values = golden.astype(np.float64) if golden.dtype.kind not in "iub" else golden
        if values.dtype.kind == "f":
            if not np.all(np.abs(values) <= 2.0**53) or np.any(values != np.rint(values)):
                raise OracleError(
                    f"standard {self.name!r}: golden is {golden.dtype} and holds values that are not integers of"
                    f" at most 2^53; the golden of a {kind.name} output must be an integer array"
                )
            values = values.astype(np.int64)
        info = ml_dtypes.iinfo(np.uint8 if kind.kind == "bool" else kind.numpy)
        low, high = int(info.min), 1 if kind.kind == "bool" else int(info.max)
        least, most = (int(values.min()), int(values.max())) if values.size else (low, high)
        if least < low or most > high:
            raise OracleError(
                f"standard {self.name!r}: golden holds {least if least < low else most}, outside {kind.name}"
                f" [{low}, {high}]; give the golden in the output's type"
            )
        return values.astype(kind.numpy)

    def _third(self, value: Any, shape: tuple[int, ...], kind: DType) -> Array | None:
        if not self.third:
            if value is not None:
                raise OracleError(f"standard {self.name!r} has no third party: leave third= out")
            return None
        if value is None:
            raise OracleError(
                f"standard {self.name!r} compares with a third party: give third= (--third), the benchmark's output"
                f" of dtype {kind.name}{_container(kind)} and shape {shape}"
            )
        third = _array(self.name, "third", value)
        if third.shape != shape or _native(third.dtype) != kind.numpy:
            raise OracleError(
                f"standard {self.name!r}: third is {third.dtype}{list(third.shape)}; it must be"
                f" {kind.numpy}{list(shape)} like the output"
            )
        return third


def _array(standard: str, name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:  # ragged, or a framework's tensor
        text = f"{name} is a {type(value).__name__} that NumPy does not take: {error}"
        raise OracleError(f"standard {standard!r}: {text}; give a NumPy array (bfloat16 as ml_dtypes')") from None
    if array.dtype.kind in "OSUMm":
        kind = f"of dtype {array.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise OracleError(f"standard {standard!r}: {name} must be an array of numbers, not {kind}")
    if isinstance(value, np.ma.MaskedArray):
        raise OracleError(f"standard {standard!r}: {name} {IS_MASKED}")
    return array


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=") if dtype.byteorder in "<>" else dtype


def _container(kind: DType) -> str:
    return "" if kind.name == str(kind.numpy) else f" (in {kind.numpy} arrays)"


def _output_type(dtype: Any) -> DType | None:
    if isinstance(dtype, str):
        return OUTPUT_TYPES.get(dtype)
    result = None if dtype is None else find(dtype)
    return None if result is None else OUTPUT_TYPES.get(result.name)


# Common arithmetic of the standards: ULPs, special values, and evaluation in blocks.

BLOCK = 1 << 15  # elements: the scratch of a block stays in the L2 cache
Row = TypeVar("Row")


def ulp(value: float, form: FloatFormat) -> float:
    """Return the spacing of the value's binade; zero and subnormals have the subnormals' spacing.

    The largest finite value has the width of its own binade (float16 65504: 32).
    """
    exponent = math.frexp(value)[1] - 1 if value else form.emin
    return math.ldexp(1.0, max(exponent, form.emin) - form.mant)


def nearest(value: float, form: FloatFormat) -> float:
    """Round a finite number to the format, ties to even; beyond the largest finite value the result is that value."""
    quantum = ulp(value, form)  # a power of two: only round() rounds
    return max(-form.max, min(form.max, round(value / quantum) * quantum))


def ulps(values: Array, form: FloatFormat) -> Array:
    """Return ``ulp`` of every finite element."""
    exponent = np.maximum(np.frexp(values)[1] - 1, form.emin)
    return np.asarray(np.ldexp(1.0, np.where(values == 0, form.emin, exponent) - form.mant))


def pick(table: dict[str, Row], sample: Sample, standard: str) -> Row:
    """Return the dtype's row. float64 uses the float32 row: every tool's default for other floats (TTK, msprobe)."""
    name = sample.dtype.name
    if name == "float64":
        name = "float32"
    if name not in table:
        raise OracleError(f"standard {standard!r} has no numbers for dtype {name!r}, only for {', '.join(table)}")
    return table[name]


@dataclass(frozen=True)
class Block:
    """A run of elements from flat position ``start`` on, as float64. Never write to them: they may be the caller's.

    Without a third party ``third`` is ``actual``.
    """

    start: int
    golden: Array
    actual: Array
    third: Array


def stored_blocks(sample: Sample) -> Iterator[tuple[int, Array, Array]]:
    """Yield (start, golden, actual) in the same runs, each in its stored dtype."""
    golden, actual = flat(sample.golden), flat(sample.actual)
    for start in range(0, sample.size, BLOCK):
        part = slice(start, start + BLOCK)
        yield start, np.asarray(golden[part]), np.asarray(actual[part])


def blocks(sample: Sample) -> Iterator[Block]:
    """Yield the sample in runs of at most BLOCK elements, in C order."""
    third = None if sample.third is None else flat(sample.third)
    for start, golden, actual in stored_blocks(sample):
        ours = as_float64(actual)
        theirs = ours if third is None else as_float64(np.asarray(third[start : start + BLOCK]))
        yield Block(start, as_float64(golden), ours, theirs)


def as_float64(values: Array) -> Array:
    """Return the values as float64: the same array, or an exact copy."""
    return values if values.dtype == np.float64 else values.astype(np.float64)


def flat(array: Array) -> Any:
    """Return an object with slices that are runs of the array in C order, without a copy of the whole."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


FINITE, INF, NEG_INF, NAN = 0, 1, 2, 3


def states(values: Array, form: FloatFormat | None = None) -> Array:
    """Return each element's state as uint8: FINITE, INF, NEG_INF or NAN. With a format: the state after rounding to it;
    a format without infinity has NaN in its place."""
    overflow = math.inf if form is None else form.overflow
    no_infinity = form is not None and form.name == "float8_e4m3fn"
    state = np.zeros(values.shape, np.uint8)
    state[values >= overflow] = NAN if no_infinity else INF
    state[values <= -overflow] = NAN if no_infinity else NEG_INF
    state[np.isnan(values)] = NAN
    return state
