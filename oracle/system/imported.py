"""What a command line names as ``module:attribute``: somebody else's backend, operator or kernels."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ..model.errors import OracleError, meant


def attribute_of(who: str, module: str, attribute: str, *, first: bool = False) -> Any:
    """Import ``module`` (the current folder counts) and return the attribute, dotted if need be.

    Raises OracleError that begins with ``who``, what asks for it. ``first``: the current folder counts before what is
    installed, as with ``python -m``. That is for files that somebody is writing there; elsewhere a file that happens to
    be called as a module of ours, or of the standard library, must not take its place.
    """
    here = str(Path.cwd())
    if here not in sys.path and (first or "" not in sys.path):
        sys.path.insert(0 if first else len(sys.path), here)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module == missing or module.startswith(missing + "."):
            raise OracleError(f"{who}: no module {missing!r} on sys.path or in {here}") from None
        raise OracleError(f"{who}: {module} needs the module {missing!r}, which is not installed") from None
    except OracleError:
        raise
    except Exception as error:
        raise OracleError(f"{who}: importing {module} failed: {type(error).__name__}: {error}") from error
    if not attribute:
        raise OracleError(f"{who}: write module:attribute; which attribute of {module}?")
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise OracleError(f"{who}: {module} has no attribute {part!r}{meant(part, dir(found))}")
        found = getattr(found, part)
    return found
