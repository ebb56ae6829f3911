"""Names in other catalogues, and conversion of their value ranges to and from our generators.

Sources: ACLNN_Case_Writing.md and Test_Case_Generation.md of ops-test-kit (dtype names), the files themselves
(``Output`` for ``output``, ``int``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np

from ..catalogue.data.case import TensorPlan, make_values, stored_shape
from ..model.aclnn import PLATFORMS
from ..model.dtypes import DTYPES, FORMATS
from ..model.errors import OracleError, unknown
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import NUMBERS, Parameter, attribute_value

_DTYPE_ALIASES = {
    "fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "fp64": "float64",
    "double": "float64", "int": "int32", "c64": "complex64", "c128": "complex128", "c32": "complex32",
}  # fmt: skip
# ATK's names of dtypes; other dtypes have NumPy's names.
ATK_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_SOC_PREFIXES = {"ascend910_95": "ascend950", "ascend910c": "ascend910_93"}


def normalised_name(name: str) -> str:
    """Return a name without the differences of spellings: capitals and underscores."""
    return name.replace("_", "").lower()


def operator_named(name: str) -> Operator | None:
    """Return the operator of an aclnn name (with or without ``aclnn``, in any capitals) or of a PyTorch function
    (``torch.ops.aten.threshold_backward``); None for another operator."""
    _, aten, function = name.rpartition("torch.ops.aten.")
    wanted = (
        normalised_name(function.partition(".")[0]).removesuffix("data")
        if aten
        else normalised_name(name).removeprefix("aclnn")
    )
    return next((op for op in OPERATORS.values() if normalised_name(op.name).removeprefix("aclnn") == wanted), None)


def operators_of_kernel(name: str) -> tuple[Operator, ...]:
    """Return the operators of an ``op_name`` (``softmax_grad``, ``SoftmaxGrad``); several can share a kernel."""
    wanted = normalised_name(name)
    return tuple(op for op in OPERATORS.values() if op.kernel is not None and normalised_name(op.kernel.name) == wanted)


def kernel_value(parameter: Parameter, value: Any) -> Any:
    """Return an attribute's value for a kernel: the word in place of aclnn's integer."""
    worded = parameter.c == "int64" and 0 <= value < len(parameter.words)
    return parameter.words[value] if worded else value


def drawn(parameter: Parameter, low: Any, high: Any, *, label: str) -> Any:
    """Return an attribute's value between two others, deterministic for a label. Raise OracleError for bad bounds."""
    low, high = attribute_value(parameter, low), attribute_value(parameter, high)
    if not all(isinstance(v, (int, float)) for v in (low, high)):
        raise OracleError(f"{parameter.name} is from {low!r} to {high!r}; a range is between two numbers")
    if low > high:
        raise OracleError(f"{parameter.name} is from {low} to {high}: low is above high")
    word = int.from_bytes(hashlib.sha256(f"{label}\n{parameter.name}".encode()).digest()[:8], "little")
    if isinstance(low, int) and isinstance(high, int):
        return type(low)(low + word % (high - low + 1))
    return float(np.float32(low + (high - low) * (word / 2**64)))


def same_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from ``name`` only in capitals and underscores."""
    return next((k for k in known if normalised_name(k) == normalised_name(name)), None)


def dtype_named(name: Any) -> str:
    """Return our name of a dtype (``fp16``, ``bf16``, ``float`` ...). Raise OracleError for an unknown one."""
    word = _DTYPE_ALIASES.get(str(name).lower(), str(name).lower())
    if not isinstance(name, str) or word not in DTYPES:
        raise unknown("dtype", name, (*_DTYPE_ALIASES, *DTYPES))
    return word


def socs_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the SoCs that a ``soc_series`` tuple selects; a leading ``-`` excludes."""
    wanted = [name for name in names if not name.startswith("-")]
    chosen = [soc for name in wanted for soc in _socs(name)] if wanted else list(PLATFORMS)
    excluded = [soc for name in names if name.startswith("-") for soc in _socs(name[1:])]
    return tuple(soc for soc in PLATFORMS if soc in chosen and soc not in excluded)


def _socs(name: str) -> list[str]:
    """Return the SoC of a series (``Ascend910B``) or chip (``Ascend910B1``); an empty list if it is not modelled."""
    word = name.lower()
    for prefix, soc in _SOC_PREFIXES.items():
        if word.startswith(prefix):
            return [soc]
    if not word.startswith("ascend"):
        raise OracleError(f"unknown SoC {name!r}; known: {', '.join(PLATFORMS)}")
    result = [soc for soc in PLATFORMS if word.startswith(soc)]
    return [max(result, key=len)] if result else []


# Value ranges of other catalogues as our generators, and ours as ranges.
#
# TTK (ops-test-kit, Test_Case_Generation.md and ttk/utilities/data.py): ``(low, high, must, ...)`` is a closed
# interval. None means -2 and 2. Both bounds and every further value appear, together in a quarter of the places, unless
# the tensor has more than 10^7 elements. Integers are real numbers truncated towards zero. An infinite bound is the
# dtype's largest number, NaN 0. Equal bounds are a constant. Float bounds over the dtype give random decimal exponents.
#
# ATK (the published case files): a number or a list of one is a constant, ``[low, high]`` uniform, an object with mean
# and std a normal distribution.

Number = int | float
LARGEST = int(FORMATS["float64"].max)
Data = dict[str, Any]


class UnrepresentableValue(OracleError):
    """A value that the tensor's integer dtype cannot represent: the case cannot be made as intended."""


TTK_DEFAULT = (-2, 2)
TTK_MIXED = 10_000_000  # elements; larger tensors do not get their must values
_COVERS = 0.99  # of the dtype's largest number: decimal exponents instead of a uniform draw


def number(value: Any) -> Number:
    """Return a number written as a number or as ``inf``, ``-inf``, ``nan``. Raise OracleError for other values."""
    if isinstance(value, str) and value.strip().lower() in NUMBERS:
        return NUMBERS[value.strip().lower()]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OracleError(f"{value!r} is not a number; write a number, 'inf', '-inf' or 'nan'")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise OracleError(f"an integer of {value.bit_length()} bits is no value of any dtype")
    return value


def constant(value: Number) -> Data:
    """Return the generator of one value everywhere."""
    return {"gen": "constant", "value": value}


def normal_of(values: Mapping[str, Any], label: str) -> tuple[float, float]:
    """Return mean and standard deviation of ATK's ``{"name": "nd", "mean": [low, high], "std": [low, high]}``. Each is
    drawn from its range by a label. Raise OracleError for another form, or if they are not finite."""
    if values.get("name", "nd") != "nd" or not {"mean", "std"} <= set(values):
        raise OracleError(f"range_values {values!r}: by name only 'nd' is known, with mean and std")
    mean, std = (_between(values[name], f"{label}\n{name}") for name in ("mean", "std"))
    if not (math.isfinite(mean) and 0 <= std < math.inf):
        raise OracleError(f"range_values {values!r}: mean and std must be finite, std at least 0")
    return mean, std


def normal_value(values: Mapping[str, Any], label: str) -> float:
    """Return one number of a normal distribution, deterministic for a label."""
    mean, std = normal_of(values, label)
    return float(np.float32(mean + std * NormalDist().inv_cdf(_share(f"{label}\nvalue"))))


def _between(given: Any, label: str) -> float:
    low, high = (number(v) for v in (given if isinstance(given, list) and len(given) == 2 else (given, given)))
    return low + (high - low) * _share(label)


def _share(label: str) -> float:
    """Return a number in (0, 1), deterministic for a label."""
    return (int.from_bytes(hashlib.sha256(label.encode()).digest()[:6], "little") + 0.5) / 2**48


def from_atk(values: Any, dtype: str, *, label: str) -> Data:
    """Return the generator of ATK's ``range_values``. ``label`` determines a mean drawn from a range. Raise
    OracleError for another form."""
    if isinstance(values, dict):
        mean, std = normal_of(values, label)
        return {"gen": "normal", "mean": mean, "std": std}
    listed = [number(v) for v in (values if isinstance(values, list) else [values])]
    if len(listed) == 1 or (len(listed) == 2 and _same(*listed)):
        return constant(_storable(listed[0], dtype))
    if len(listed) != 2:
        raise OracleError(f"range_values {values!r}: a number, [value] or [low, high] is needed")
    low, high = (_finite(v, dtype) for v in listed)
    if low > high:
        raise OracleError(f"range_values {values!r}: low is above high")
    return {"gen": "within", "low": low, "high": high}


def from_ttk(cell: Any, plan: TensorPlan) -> Data:
    """Return the generator of one entry of TTK's ``input_data_ranges``. Raise OracleError if malformed."""
    values = list(TTK_DEFAULT) if cell is None else list(cell) if isinstance(cell, (tuple, list)) else None
    if values is None or len(values) < 2:
        raise OracleError(f"range {cell!r}: (low, high) or (low, high, must, ...) is needed")
    defaults = (*TTK_DEFAULT, *values[2:])
    listed = [number(d if v is None else v) for v, d in zip(values, defaults, strict=True)]
    low, high = listed[:2]
    must = _distinct(_storable(v, plan.dtype) for v in listed) if math.prod(plan.shape) <= TTK_MIXED else []
    if _same(low, high):
        low = high = _storable(low, plan.dtype)
        return constant(low) if len(must) < 2 else {"gen": "within", "low": low, "high": high, "must": must}
    low, high = _finite(low, plan.dtype), _finite(high, plan.dtype)
    if low > high:
        raise OracleError(f"range {cell!r}: low is above high")
    data: Data = {"gen": "within", "low": low, "high": high, "whole": False, "must": must}
    largest = _largest(plan.dtype)
    if DTYPES[plan.dtype].kind == "float" and low < 0 < high and max(-low, high) >= _COVERS * largest:
        data["decades"] = True
    return data


def _same(low: Number, high: Number) -> bool:
    return low == high or (low != low and high != high)


def _largest(dtype: str) -> float:
    if DTYPES[dtype].kind in ("int", "uint"):
        return float(ml_dtypes.iinfo(DTYPES[dtype].numpy).max)
    return FORMATS[dtype].max if dtype in FORMATS else 1.0


def _finite(value: Number, dtype: str) -> Number:
    """Return a bound as a finite number of the dtype."""
    if value != value:
        return 0
    return _storable(math.copysign(_largest(dtype), value) if math.isinf(value) else value, dtype)


def _storable(value: Number, dtype: str) -> Number:
    """Return a value truncated to an integer for an integer dtype. Raise UnrepresentableValue if it does not fit."""
    if DTYPES[dtype].kind not in ("int", "uint"):
        return value
    if not math.isfinite(value):
        raise UnrepresentableValue(f"{value} cannot be a value of {dtype}")
    info = ml_dtypes.iinfo(DTYPES[dtype].numpy)
    if not info.min <= int(value) <= info.max:
        raise UnrepresentableValue(f"{value} does not fit into {dtype}")
    return int(value)


def _distinct(values: Any) -> list[Number]:
    """Return each value once; 0 and -0 differ, and all NaNs are equal."""
    result: dict[str, Number] = {}
    for value in values:
        result.setdefault(repr(value + 0.0) if value or value != value else repr(math.copysign(1, value) * 0.0), value)
    return list(result.values())


@dataclass(frozen=True)
class Range:
    """A tensor's data in a range format. ``exact``: the range means the same data as the plan's generator."""

    low: Number
    high: Number
    must: tuple[Number, ...] = ()
    exact: bool = True


def range_of(plan: TensorPlan, case_id: str, name: str, *, ignored: int | None = None) -> Range:
    """Return the range that describes a plan's data.

    If the generator is not a range, or exceeds the type's numbers, return the range of the values that it makes with
    seed 0, with infinities and NaN as ``must``. ``ignored`` (a class index of no class) is then treated like them.
    """
    data = plan.data or {}
    exact = None if set(data) & _MODIFIED else _exact(data)
    if exact is not None:
        largest = FORMATS[plan.dtype].max if plan.dtype in FORMATS else math.inf
        if not any(largest < abs(end) < math.inf for end in (exact.low, exact.high)):
            return exact
    made = make_values(data, stored_shape(plan.shape, plan.view), plan.dtype, case_id, name, 0).reshape(-1)
    values = made.astype(np.float64)
    special = [v for v in (math.inf, -math.inf) if (values == v).any()] + [math.nan] * bool(np.isnan(values).any())
    if ignored is not None and (values == ignored).any():
        special.append(ignored)
    kept = made[np.isfinite(values) & (values != (math.nan if ignored is None else ignored))]
    if not kept.size:
        low = special[0] if special else 0
        return Range(low, low, tuple(special[1:]), len(special) < 2)
    number_type = float if DTYPES[plan.dtype].kind == "float" else int
    low, high = number_type(kept.min()), number_type(kept.max())
    return Range(low, high, tuple(special), low == high and not special)


def _exact(data: Mapping[str, Any]) -> Range | None:
    """Return the range that means the same data as a generator, None if there is none."""
    gen = data.get("gen")
    if gen == "constant":
        return Range(data["value"], data["value"])
    if gen == "uniform":
        return Range(data.get("low", -1.0), data.get("high", 1.0))
    if gen == "probabilities":
        margin = data.get("margin", 0.05)
        return Range(margin, 1.0 - margin)
    if gen == "within":
        ends = (data["low"], data["high"])
        return Range(*ends, tuple(v for v in data.get("must", ()) if not any(_same(v, e) for e in ends)))
    return None


_MODIFIED = {"scale", "spots", "stream", "decades", "share"}  # not expressible as a range
