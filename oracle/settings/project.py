"""A user's own project: ``[tool.aclnn_oracle]`` of the nearest ``pyproject.toml`` holds defaults of options.

    [tool.aclnn_oracle]
    backend = "my_device:Device"
    soc = "ascend910b"
    expectations = ["expectations.yaml"]     # paths are relative to the file

Whatever a command line gives counts before it. ``expectations/BACKEND.yaml`` beside the file is read too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model.errors import OracleError, unknown
from .options import OPTIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it too

FILE = "pyproject.toml"
TABLE = "aclnn_oracle"
_PATHS = ("expectations", "record", "report", "golden-cache", "record-outputs")


@dataclass(frozen=True)
class Project:
    """What the nearest project says; nothing where there is none, or it says nothing."""

    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # by the place in a parsed namespace

    @classmethod
    def near(cls, start: Path) -> Project:
        """Read the nearest ``pyproject.toml`` with our table. Raises OracleError for an option that is none."""
        for folder in (start, *start.parents):
            path = folder / FILE
            if path.is_file():
                found = _table(path)
                return cls(folder, _options(path, found)) if found is not None else cls()
        return cls()

    def fill(self, values: dict[str, Any]) -> None:
        """Give options that a command line leaves out the project's values."""
        for dest, value in self.options.items():
            if values.get(dest) in (None, False, []):
                values[dest] = value


def _table(path: Path) -> Mapping[str, Any] | None:
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):  # somebody else's file: whoever needs it says what is wrong
        return None
    found = document.get("tool", {}).get(TABLE)
    if found is not None and not isinstance(found, dict):
        raise OracleError(f"{path}: [tool.{TABLE}] must be a table")
    return found


def _options(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    known = {option.name: option for option in OPTIONS}
    found: dict[str, Any] = {}
    for name, value in table.items():
        option = known.get(name)
        if option is None:
            raise OracleError(f"{path}: [tool.{TABLE}]: {unknown('option', name, known)}")
        wanted = {"flag": "true or false", "append": "a list of texts", "value": "a text or a number"}[option.kind]
        many = value if isinstance(value, list) else [value]
        fits = isinstance(value, bool) if option.kind == "flag" else all(
            isinstance(each, (str, int, float)) and not isinstance(each, bool) for each in many
        )  # fmt: skip
        if not fits or isinstance(value, list) != (option.kind == "append"):
            raise OracleError(f"{path}: [tool.{TABLE}] {name}: must be {wanted}, not {value!r}")
        texts = [str(path.parent / str(each)) if name in _PATHS else str(each) for each in many]
        found[option.dest] = value if option.kind == "flag" else texts if option.kind == "append" else texts[0]
    return found
