"""The registry of data generators, and the check of a generator's parameters in a catalogue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....model.call import Array
from ....model.errors import OracleError, unknown

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """A generator's parameter: its kind (int, float, bool, str, list) and its default, or ``required``."""

    name: str
    kind: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Generator:
    name: str
    make: Callable[..., Array]
    parameters: tuple[Parameter, ...]

    @cached_property
    def known(self) -> dict[str, Parameter]:
        """The parameters that a catalogue can write for it, by name."""
        return {p.name: p for p in (*self.parameters, *MODIFIERS)}


GENERATORS: dict[str, Generator] = {}
# The parameters that every generator takes in addition to its own; applied in data/case.py.
MODIFIERS = (
    Parameter("scale", "float", 1.0),  # multiplies the values before they are rounded
    Parameter("outliers", "float", 0.0),  # multiplies one in a thousand of the values, at least one
    Parameter("spots", "list", ()),  # [[flat index, value], ...]: special values; a negative index counts from the end
    Parameter("stream", "str", ""),  # the parameter whose random words are used: equal data in two tensors
)


def generator(make: Callable[..., Array]) -> Callable[..., Array]:
    """Register a function; its keyword-only arguments become the catalogue's parameters."""
    written = [p for p in inspect.signature(make).parameters.values() if p.kind is p.KEYWORD_ONLY]
    GENERATORS[make.__name__] = Generator(make.__name__, make, tuple(map(_parameter, written)))
    return make


def _parameter(written: inspect.Parameter) -> Parameter:
    kind = str(written.annotation).partition("[")[0]
    required = written.default is written.empty
    return Parameter(written.name, kind, None if required else written.default, required)


def check(data: Mapping[str, Any]) -> None:
    """Raise OracleError for an unknown generator, an unknown or missing parameter, or a value of the wrong kind."""
    if "gen" not in data:
        raise OracleError(f"{', '.join(data)}: of which generator? Write gen: NAME; known: {', '.join(GENERATORS)}")
    name = data["gen"]
    if name not in GENERATORS:
        raise unknown("generator", name, GENERATORS)
    known = GENERATORS[name].known
    for key, value in data.items():
        if key == "gen":
            continue
        if key not in known:
            raise unknown(f"parameter of generator {name}", key, known)
        if not _fits(known[key].kind, value):
            raise OracleError(f"generator {name}: {key} must be of kind {known[key].kind}, not {value!r}")
        if key == "pattern" and value not in PATTERNS:
            raise unknown(f"pattern of generator {name}", value, PATTERNS)
        if key in _RANGES or known[key].kind == "int":
            _check_range(name, key, value)
        elif known[key].kind == "list" and key != "spots":
            _check_numbers(name, key, value)
    _check_order(name, {key: data.get(key, known[key].default) for key in ("low", "high") if key in known})
    for spot in data.get("spots", ()):
        if not (
            isinstance(spot, (list, tuple)) and len(spot) == 2 and _fits("int", spot[0]) and _fits("float", spot[1])
        ):
            raise OracleError(f"generator {name}: a spot is [flat index, number], not {spot!r}")
    for parameter in known.values():
        if parameter.required and parameter.name not in data:
            raise OracleError(f"generator {name}: the parameter {parameter.name} is missing")


PATTERNS = ("random", "first", "last", "alternate", "runs", "all")  # how ignored class indices are spread

# The least and the largest number allowed for a parameter, in any generator.
_MOST = 2**62  # places and steps in arrays fit in it
_RANGES = {"count": (0, _MOST), "repeat": (1, _MOST), "steps": (0, _MOST), "binades": (1, 2048), "p": (0, 1),
           "share": (0, 1), "margin": (0, 0.5), "scale": (-1e300, 1e300), "outliers": (-1e300, 1e300),
           "std": (0, 1e300)}  # fmt: skip
_EXPONENTS = {"magnitudes", "near"}  # generators whose low and high are powers of two


def _check_range(name: str, key: str, value: Any) -> None:
    usual = (-2048, 2048) if name in _EXPONENTS else (-(2**64), 2**64)
    least, most = _RANGES.get(key, usual)
    if not least <= value <= most:
        wanted = f"at least {least}" if value < least and most == _MOST else f"in [{least}, {most}]"
        raise OracleError(f"generator {name}: {key} is {value}; it must be {wanted}")


def _check_numbers(name: str, key: str, values: Sequence[Any]) -> None:
    """Raise OracleError for an entry that is not a number, and for an empty list of points."""
    if not values and key == "points":
        raise OracleError(f"generator {name}: {key} is empty; it must hold a number")
    for place, each in enumerate(values):
        if not isinstance(each, (int, float)):
            raise OracleError(f"generator {name}: {key}[{place}] is {each!r}; it must be a number")


def _check_order(name: str, numbers: Mapping[str, Any]) -> None:
    low, high = numbers.get("low"), numbers.get("high")
    if low is not None and high is not None and low > high:
        raise OracleError(f"generator {name}: low is {low} and high is {high}; the lower one comes first")


def _fits(kind: str, value: Any) -> bool:
    if kind == "list":
        return isinstance(value, (list, tuple))
    if kind in ("str", "bool"):
        return isinstance(value, str if kind == "str" else bool)
    number = (int,) if kind == "int" else (int, float)
    return isinstance(value, number) and not isinstance(value, bool)
