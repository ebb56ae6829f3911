"""The settings of a run: parsed once, checked once, small enough to send to a worker or a child process."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..backends import BUILTIN
from ..catalogue.data.case import HUGE, TIERS
from ..catalogue.expand.ecosystem import Volume
from ..catalogue.plan.statuses import Pair, pairs_named
from ..model.aclnn import DEFAULT_SOC, DOCUMENT, NEWEST, PLANS, SOURCE, SUBNORMALS, cann_of, cann_version, platform
from ..model.errors import OracleError, unknown
from ..numerics.compiled.engine import requested
from ..numerics.floats.blocks import block_size, thread_count
from ..operators.answers.registry import operator_named, register
from ..record.types import LAYERS
from .options import OPTIONS, spell
from .shards import Shard

DEVICE_BACKENDS = ("aclnn", "torch_npu")
OURS = ("cpu", "replay")  # backends without foreign code: they need no separate process
OVERFLOW = ("inf_nan", "saturate")
CASE_LIMIT = 120.0  # seconds per call of a device in its process; --timeout-per-case replaces it
HUGE_LIMIT = 7200.0  # and per call of the huge tier
BACKEND_LIMIT = 300.0  # minimum seconds to load a backend: a device runtime can take minutes the first time
LONGEST = 1e9  # seconds, 31 years: waiting functions have an upper limit
_WHOLE = ("determinism", "invariance", "record-outputs", "third-party", "golden-cache", "cluster", "pair")
LEAST_MEMORY = 64 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Settings:
    """How every case of a run is made, run and judged. ``device`` is this process's own device number."""

    backend: str = "cpu"
    backend_options: tuple[tuple[str, str], ...] = ()
    operators: tuple[str, ...] = ()  # operators from outside, as module:NAME
    only: tuple[str, ...] = ()  # aclnn names; empty: every operator
    pairs: tuple[Pair, ...] = ()  # gradients' cases follow their forwards' cases; ``only`` names the forwards
    where: str | None = None  # the words of --where
    cases: frozenset[str] = frozenset()  # ids; empty: all
    expectations: tuple[str, ...] = ()  # files in addition to the catalogue's own
    explain: bool = True  # run further calls at the end of a run with failures
    steps: bool = False  # look for a wrong step of the formula: as slow as ten verdicts
    soc: str = DEFAULT_SOC
    cann: str = NEWEST
    standard: str = "mixed"
    standard_options: tuple[tuple[str, Any], ...] = ()
    third_party: str | None = None
    tier: str = "standard"
    volume: Volume | None = None  # generated cases instead of a tier's
    shard: Shard | None = None  # None: all cases
    seed: int = 0
    shuffle: int | None = None  # the order's seed; None: the order of the files
    layers: tuple[str, ...] = LAYERS
    gate: tuple[str, ...] = LAYERS
    authority: str = SOURCE
    overflow: str | None = None
    subnormals: str = ""
    determinism: int = 1
    invariance: bool = False
    isolate: bool | None = None  # --isolate, --no-isolate; None: everything except our own code
    timeout: float | None = None  # of --timeout-per-case; inf: none
    backend_timeout: float = BACKEND_LIMIT
    max_memory: int | None = None  # bytes of the device's process
    record_outputs: str | None = None
    devices: tuple[int, ...] = ()
    emulate: bool = False
    golden_cache: str | None = None  # a folder
    cluster: str | None = None  # a Dask scheduler's address: cases run on its workers
    max_elements: int | None = None
    worker: str = "main"
    device: int | None = None
    place: int | None = None  # the worker's index among those of -n, which share the devices
    replay_arguments: tuple[str, ...] = ()  # the options a replay command must repeat

    @property
    def under(self) -> dict[str, str]:
        """The conditions, except the SoC, on which a call's rules depend, by the call's field names."""
        return {"cann": self.cann, "subnormals": self.subnormals}

    @property
    def saturates(self) -> bool:
        """Whether an overflow is expected to give the largest finite value (``--overflow``, else the SoC's mode)."""
        return platform(self.soc).saturates if self.overflow is None else self.overflow == "saturate"

    @property
    def generated(self) -> Volume | None:
        """The volume to generate. A SoC without bfloat16 plans two thirds of it, so the volume is larger there."""
        if self.volume is None or platform(self.soc).bfloat16:
            return self.volume
        return replace(self.volume, cases=self.volume.cases * 8 // 5)

    def for_worker(self, name: str, place: int | None = None) -> Settings:
        """Return the settings of a worker ("gw1"; "main" without workers) with its name and its device of --devices.
        ``place``: its index among all workers."""
        device = self.devices[(place or 0) % len(self.devices)] if self.devices else self.device
        return replace(self, worker=name, place=place, device=device)

    @property
    def chosen(self) -> list[str]:
        """The options of this project, except tier and volume, that select some of the catalogue's cases."""
        limit = [] if self.max_elements is None else ["--max-elements", str(self.max_elements)]
        words = [] if self.where is None else ["--where", self.where]
        words += [word for case_id in sorted(self.cases) for word in ("--case", case_id)]
        option = "--pair" if self.pairs else "--op"
        return [word for name in self.only for word in (option, name)] + limit + words

    @property
    def apart(self) -> bool:
        """Whether the device has a separate process: every device except our own code has one, unless --no-isolate."""
        if self.isolate is not None:
            return self.isolate
        limited = self.timeout not in (None, math.inf) or self.max_memory is not None  # needs a separate process
        return self.backend not in OURS or limited

    @property
    def case_limit(self) -> float:
        """The seconds after which a device's call in its process is ended."""
        usual = HUGE_LIMIT if self.tier == HUGE else CASE_LIMIT
        return usual if self.timeout is None else self.timeout


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Return the settings of a parsed namespace (``vars(namespace)``). Raises OracleError for a wrong value, also of an
    environment variable that evaluation reads."""
    requested(), block_size(), thread_count()
    given = {option.name: values.get(option.dest) for option in OPTIONS}
    _require_words(given)
    operators = tuple(given["operator"] or ())
    register(operators)
    pairs = _pairs(given)
    text = {name: value for name, value in given.items() if isinstance(value, str)}
    standard = text.get("standard", "mixed")
    options = {key: _literal(value) for key, value in key_values("--standard-option", given["standard-option"])}
    _check_standard(standard, options, text.get("third-party"))
    timeout = _seconds(text["timeout-per-case"]) if "timeout-per-case" in text else None
    layers = _layers(text.get("layers"))
    return Settings(
        backend=text.get("backend", "cpu"),
        backend_options=tuple(key_values("--backend-option", given["backend-option"])),
        operators=operators,
        only=tuple(operator_named(name).name for name in given["op"] or ()) or tuple(forward for forward, _ in pairs),
        pairs=pairs,
        where=text.get("where"),
        cases=frozenset(given["case"] or ()),
        expectations=tuple(map(_expectations, given["expectations"] or ())),
        explain=not given["no-explain"],
        soc=platform(text.get("soc", DEFAULT_SOC)).soc,
        cann=cann_version(text["cann"]) if "cann" in text else _cann_here(given),
        standard=standard,
        standard_options=tuple(options.items()),
        third_party=text.get("third-party"),
        tier=_tier(given, text.get("tier", "standard")),
        volume=Volume.of(text["volume"]) if "volume" in text else None,
        shard=Shard.of(text["shard"]) if "shard" in text else None,
        seed=_integer("--seed", text.get("seed", "0"), low=0),
        shuffle=_integer("--shuffle", text["shuffle"], low=0) if "shuffle" in text else None,
        layers=layers,
        gate=_gate(text.get("gate"), layers, text.get("authority")),
        authority=_one_of("authority", text.get("authority", SOURCE), PLANS),
        overflow=_one_of("overflow mode", text["overflow"], OVERFLOW) if "overflow" in text else None,
        subnormals=_one_of("rule for subnormal numbers", text["subnormals"], SUBNORMALS)
        if "subnormals" in text
        else "",
        determinism=_integer("--determinism", text.get("determinism", "1"), low=1),
        invariance=bool(given["invariance"]),
        isolate=_isolated(given),
        timeout=timeout,
        backend_timeout=max(BACKEND_LIMIT, timeout or 0.0),
        max_memory=_memory(text["max-memory"]) if "max-memory" in text else None,
        record_outputs=_folder_to_write("--record-outputs", text.get("record-outputs")),
        devices=_devices(text.get("devices")),
        emulate=_emulated(given, text.get("backend", "cpu")),
        golden_cache=_folder("--golden-cache", text.get("golden-cache")),
        cluster=_cluster(given, text),
        max_elements=_integer("--max-elements", text["max-elements"], low=1) if "max-elements" in text else None,
        replay_arguments=tuple(spell(dict(values), only_verdict=True)),
    )


def _pairs(given: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Return the pairs of --pair. Raises OracleError for a name without a pair, and together with --op."""
    if given["pair"] and given["op"]:
        raise OracleError("--pair and --op: both choose operators; give one of them")
    return tuple(dict.fromkeys(pair for name in given["pair"] or () for pair in pairs_named(name)))


def _require_words(given: Mapping[str, Any]) -> None:
    """Raise OracleError for an option with an empty value, for example from an unset shell variable."""
    for option in OPTIONS:
        value = given[option.name]
        if "" in (value if isinstance(value, list) else [value]):
            raise OracleError(f"{option.flag} '': is empty; give {option.metavar}, or leave {option.flag} out")


def _emulated(given: Mapping[str, Any], backend: str) -> bool:
    """Return whether the emulated CANN is used. OracleError if all backends are built-in and none runs on CANN."""
    asked = {backend, (given["third-party"] or backend).partition(":")[0]}
    if given["emulate"] and asked.issubset(set(BUILTIN).difference(DEVICE_BACKENDS)):
        raise OracleError(f"--emulate: --backend {backend} does not run on CANN; give --backend aclnn or torch_npu")
    return bool(given["emulate"])


def _isolated(given: Mapping[str, Any]) -> bool | None:
    """Return the choice of --isolate and --no-isolate. OracleError for --no-isolate with a limit on the process."""
    if not given["no-isolate"]:
        return True if given["isolate"] else None
    for name in ("isolate", "timeout-per-case", "max-memory"):
        if given[name]:
            raise OracleError(f"--no-isolate and --{name}: only a process of its own can be limited; give one of them")
    return False


def _tier(given: Mapping[str, Any], name: str) -> str:
    """Return the tier. Raises OracleError together with --volume; and for the huge tier together with an option that
    needs a whole reference or a second output."""
    if given["tier"] and given["volume"]:
        raise OracleError("--tier and --volume: generated cases are of no tier; give one of them")
    if _one_of("tier", name, (*TIERS, HUGE)) == HUGE:
        for option in _WHOLE:
            if given[option]:
                raise OracleError(f"--tier huge and --{option}: its cases are judged by blocks; leave --{option} out")
    return name


def _cann_here(given: Mapping[str, Any]) -> str:
    """Return the version of the CANN that a run would use; the newest release if it uses none."""
    if given["emulate"]:
        from ..emulator.toolkit import VERSION

        return cann_of(VERSION)
    if given["backend"] not in DEVICE_BACKENDS:
        return NEWEST
    from ..cann.discovery import find_toolkit

    try:
        return cann_of(find_toolkit().version)
    except OracleError:  # opening the backend reports it
        return NEWEST


def _cluster(given: Mapping[str, Any], text: Mapping[str, str]) -> str | None:
    """Return the address of --cluster. Raises OracleError together with an option that a cluster does not support."""
    address = text.get("cluster")
    if address is None:
        return None
    if (backend := text.get("backend", "cpu")) != "cpu":
        raise OracleError(
            f"--cluster runs --backend cpu; {backend} runs where its device is: share its cases out with --shard or -n"
        )
    for name in ("isolate", "timeout-per-case", "record-outputs", "devices", "third-party"):
        if given[name]:
            raise OracleError(f"--cluster and --{name}: a cluster's workers run the oracle itself; leave one out")
    return address


def key_values(option: str, texts: list[str] | None) -> list[tuple[str, str]]:
    """Return the pairs of a repeated option KEY=VALUE. Raises OracleError for another form, or a key twice."""
    pairs = []
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise OracleError(f"{option} {text!r}: must be KEY=VALUE")
        pairs.append((key, value))
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise OracleError(f"{option}: {key!r} is given twice")
    return pairs


def _literal(text: str) -> Any:
    """Return the number or boolean that a text spells, else the text."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # {[]: 1}, or nested too deep
        return text


def _one_of(kind: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise unknown(kind, value, known)
    return value


def _check_standard(name: str, options: Mapping[str, Any], third_party: str | None) -> None:
    from ..standards import STANDARDS

    result = STANDARDS[_one_of("standard", name, tuple(STANDARDS))]
    for key, value in options.items():
        if key not in result.options:
            raise unknown(f"option of standard {name!r}", key, tuple(result.options) or "none")
        try:
            result.options[key].convert(value)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            raise OracleError(f"--standard-option {key}={value}: must be {result.options[key].rule}") from None
    if result.third and third_party is None:
        raise OracleError(f"--standard {name} compares with a third party: it needs --third-party BACKEND")
    if third_party is not None and not result.third:
        raise OracleError(f"--third-party {third_party}: standard {name!r} has no third party; give --standard dual-L1")


def _integer(option: str, text: str, *, low: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise OracleError(f"{option} {text!r}: must be an integer") from None
    if value < low:
        raise OracleError(f"{option} {value}: must be at least {low}")
    return value


def _seconds(text: str) -> float:
    if text == "none":
        return math.inf
    try:
        value = float(text)
    except ValueError:
        raise OracleError(f"--timeout-per-case {text!r}: must be a number of seconds, or none") from None
    if not 0 < value <= LONGEST:
        what = f"a positive number of seconds, at most {LONGEST:g}, or none"
        raise OracleError(f"--timeout-per-case {text}: must be {what}")
    return value


def _expectations(text: str) -> str:
    """Return the absolute path of an --expectations file, which must exist."""
    if not Path(text).is_file():
        why = "is a folder; name a file of it" if Path(text).is_dir() else "there is no such file"
        raise OracleError(f"--expectations {text}: {why}")
    return str(Path(text).resolve())


def _folder(option: str, text: str | None) -> str | None:
    """Return the folder that a run writes to, created if it does not exist."""
    if text is None:
        return None
    try:
        Path(text).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OracleError(f"{option} {text}: no folder can be made there: {error.strerror}; name another") from None
    return str(Path(text).resolve())


def _folder_to_write(option: str, text: str | None) -> str | None:
    """Return the folder that a run writes to. Unlike a cache, which can also be read only, it must be writable."""
    if (folder := _folder(option, text)) is not None and not os.access(folder, os.W_OK | os.X_OK):
        raise OracleError(f"{option} {text}: nothing can be written there; name another folder")
    return folder


def _memory(text: str) -> int:
    """Return the bytes of --max-memory: ``2000000000``, ``512M``, ``1.5G`` (1024 each). Python, NumPy and a small case
    must fit into them."""
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    try:
        value = float(digits) * _UNITS[unit]
    except (ValueError, KeyError):
        raise OracleError(
            f"--max-memory {text!r}: must be a number of bytes, also with K, M, G or T, e.g. 8G"
        ) from None
    if not 0 < value < 2**62:
        raise OracleError(f"--max-memory {text}: must be a positive number of bytes below 2^62")
    if value < LEAST_MEMORY:
        raise OracleError(f"--max-memory {text}: must be at least 64M, for the device's process itself")
    return int(value)


def _layers(text: str | None) -> tuple[str, ...]:
    names = LAYERS if text is None else tuple(part.strip() for part in text.split(","))
    for name in names:
        _one_of("layer", name, LAYERS)
    return tuple(name for name in LAYERS if name in names)


def _gate(text: str | None, judged: tuple[str, ...], authority: str | None) -> tuple[str, ...]:
    """Return the layers that decide a case's status: the layers of --gate, else all judged layers. Under the document's
    authority the default omits ``strict``, the project's own bound. ``structure`` always decides."""
    whole = tuple(name for name in judged if name != "strict" or authority != DOCUMENT)
    chosen = whole if text is None else _layers(text)
    for name in chosen:
        if name not in judged:
            raise OracleError(f"--gate {text}: layer {name} is not judged; --layers says {','.join(judged)}")
    return tuple(name for name in judged if name in ("structure", *chosen))


def _devices(text: str | None) -> tuple[int, ...]:
    numbers = tuple(_integer("--devices", part, low=0) for part in text.split(",")) if text else ()
    if len(set(numbers)) != len(numbers):
        raise OracleError(f"--devices {text}: a device is named twice")
    return numbers
