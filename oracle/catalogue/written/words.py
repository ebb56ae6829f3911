"""Values as a catalogue file writes them: single or in lists, words of a shorthand, references, names to check."""

from __future__ import annotations

import re
from typing import Any

from ...model import limits
from ...model.call import FORMAT_ENUM
from ...model.errors import unknown
from ...model.platforms import cann_version, platform
from ...model.status import CODES
from .shapes import is_reference

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?\.?inf\Z|\.?nan\Z")


def listed(value: Any) -> list[Any]:
    """Return a value that stands for a list of one as that list."""
    return value if isinstance(value, list) else [value]


def flat(values: list[Any]) -> list[Any]:
    """Return the values of lists within lists one after the other."""
    return [x for value in values for x in (flat(value) if isinstance(value, list) else [value])]


def word(word: str) -> Any:
    """Return what a word of a shorthand stands for: a number, true or false, else itself."""
    if len(word) > limits.DIGITS or not _NUMBER.match(word):
        return {"true": True, "false": False}.get(word, word)
    if re.match(r"[-+]?\d+\Z", word):
        return int(word)
    return float(word.replace(".inf", "inf").replace(".nan", "nan"))


def stand_in(value: Any) -> Any:
    """References are numbers once the axes are known; the parameter check sees a number in their place."""
    return 1 if is_reference(value) else value


def expectations(written: Any) -> dict[str, str]:
    """Return the expected status by ``soc``, ``soc@version`` or ``default``. Raises OracleError for unknown ones."""
    expect = {"default": written} if isinstance(written, str) else dict(written or {})
    for key, status in expect.items():
        soc, separator, since = key.partition("@")
        if key != "default":
            platform(soc, cann_version(since) if separator else None)
        if status not in CODES:
            raise unknown("status", status, CODES)
    return expect


def platforms(written: Any) -> tuple[str, ...]:
    """Return the SoCs that a name or a list of them says. Raises OracleError for one that is not known."""
    return tuple(platform(name).soc for name in listed(written))


def check_format(name: str) -> None:
    """Raise OracleError for a tensor's format that is not known."""
    if name not in FORMAT_ENUM:
        raise unknown("format", name, FORMAT_ENUM)
