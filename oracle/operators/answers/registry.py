"""The registry of operators: the pages of this package and the pages of other packages.

A page is a module of ``oracle/operators`` named after its operator. Pages from outside come from entry points of the
group ``aclnn_oracle.operators`` and from ``--operator module:NAME``; both are registered before the first look-up. An
entry point that cannot be registered causes a warning, and the other operators work without it.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ...model.errors import OracleError, OracleWarning, closest
from ...system.process import attribute_of
from ..definition.operator import Operator

GROUP = "aclnn_oracle.operators"
_PAGES = __name__.rpartition(".answers")[0]  # the package of the pages


class Registry(Mapping[str, Operator]):
    """Operators by aclnn name: first the package's own, loaded at the first look-up."""

    def __init__(self) -> None:
        self._found: dict[str, Operator] = {}
        self._folders: dict[str, Path] = {}
        self._loaded = self._loading = False
        self._lock = threading.RLock()  # several threads can make a process's first calls
        self._added: dict[str, str] = {}  # names of added operators, by module:NAME
        self._unusable: list[str] = []  # the problem of each entry point that could not be registered

    def __getitem__(self, name: str) -> Operator:
        return (self._found if self._loaded else self._all())[name]

    def __contains__(self, name: object) -> bool:
        return name in (self._found if self._loaded else self._all())

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Operator]:
        if not self._loaded:
            with self._lock:
                if not (self._loaded or self._loading):  # clash() looks up pages while they load
                    self._load()
        return self._found

    def _load(self) -> None:
        self._loading = True
        try:
            for page in pages():
                self._add(importlib.import_module(f"{_PAGES}.{page}").OPERATOR)
            for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
                self._announced(entry)
            self._loaded = True
        except BaseException:
            self._found.clear()
            raise
        finally:
            self._loading = False

    def _announced(self, entry: EntryPoint) -> None:
        try:
            package = "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
            self._outside(f"{entry.module}:{entry.attr}", f"entry point {entry.name} of {package}")
        except OracleError as error:
            from multiprocessing import parent_process

            self._unusable.append(str(error))
            if parent_process() is None and "PYTEST_XDIST_WORKER" not in os.environ:  # the parent process has warned
                warnings.warn(f"{error}; its operator is left out", OracleWarning, stacklevel=2)

    @property
    def brought(self) -> tuple[str, ...]:
        """The names of the added operators."""
        return tuple(self._added.values())

    @property
    def unusable(self) -> tuple[str, ...]:
        """The problems of the entry points whose operators are omitted."""
        self._all()
        return tuple(self._unusable)

    def add(self, text: str) -> Operator:
        """Register the operator that ``module:NAME`` names. OracleError if it is no operator or clashes with one."""
        self._all()
        result = self._outside(text, f"--operator {text}")
        self._added[text] = result.name
        return result

    @property
    def added(self) -> tuple[str, ...]:
        """The added operators as ``module:NAME``, for other processes that must register them too."""
        return tuple(self._added)

    def _outside(self, text: str, origin: str) -> Operator:
        result = _imported(text, origin)
        module = sys.modules[text.partition(":")[0]]
        known = self._found.get(result.name)
        if known is not None and not known.is_built_in and self._folders.get(result.name) == _folder(module):
            return known  # named twice
        from ..definition.page_checks import accepted  # not needed for the pages of this package

        self._add(accepted(replace(result, origin=origin)))
        self._folders[result.name] = _folder(module)
        return self._found[result.name]

    def _add(self, page: Operator) -> None:
        known = self.clash(page.name, page.slug)
        if known is not None:
            same_name = page.name.lower() == known.name.lower()
            theirs = f"name {known.name}" if same_name else f"slug {known.slug}"
            raise OracleError(f"operator {page.name} of {page.origin}: {known.origin} has the {theirs}")
        self._found[page.name] = page

    def clash(self, name: str, slug: str) -> Operator | None:
        """Return the operator that has this name or this slug, compared without regard to case."""
        for known in self._all().values():
            if known.name.lower() == name.lower() or known.slug.lower() == slug.lower():
                return known
        return None

    def remove(self, name: str) -> None:
        """Remove an operator from outside."""
        del self._folders[name], self._found[name]
        self._added = {text: added for text, added in self._added.items() if added != name}

    def catalogue_file(self, page: Operator) -> Path:
        """Return the YAML file of an operator from outside. Raises OracleError if there is none."""
        file = self._folders[page.name] / f"{page.slug}.yaml"
        if not file.is_file():
            text = f"`aclnn-oracle new-operator {page.name} --dir DIR` writes one to begin with"
            raise OracleError(f"{page.origin}: its cases are missing: there is no {file}; {text}")
        return file

    def folders(self) -> Mapping[str, Path]:
        """Return the folders of operators from outside. Their YAML files are there."""
        self._all()
        return self._folders


def register(operators: Iterable[str]) -> None:
    """Register operators from outside, each given as ``module:NAME``. Raises OracleError if one is not an operator."""
    for text in operators:
        OPERATORS.add(text)


def operators() -> tuple[str, ...]:
    """Return the aclnn names of the operators."""
    return tuple(OPERATORS)


def operator(name: str) -> Operator:
    """Return an operator by its aclnn name. The OracleError for an unknown name suggests known names."""
    if not isinstance(name, str) or name not in OPERATORS:
        raise unknown_operator(name)
    return OPERATORS[name]


def operator_named(name: str) -> Operator:
    """Return an operator by its aclnn name or by its slug. The OracleError for an unknown name suggests known names."""
    result = OPERATORS.get(name) or next((op for op in OPERATORS.values() if op.slug == name), None)
    if result is not None:
        return result
    raise unknown_operator(name)


def unknown_operator(name: object) -> OracleError:
    """Return the error for an unregistered operator: it suggests a similar name or says how to register an operator."""
    begins = _letters(str(name)).removeprefix("aclnn")
    by_letters = {_letters(op.slug): op for op in OPERATORS.values()}
    likely = [known for known in by_letters if begins and known.startswith(begins)]
    likely = likely or closest(begins, by_letters, likeness=0.85)
    close = by_letters[likely[0]] if likely else None
    names = [] if close is None else [each for each in (close.name, close.slug) if each != name]
    hints = [f"did you mean {', or '.join(names)}?"] if names else []
    hints += [f"it may be one that is left out: {each}" for each in OPERATORS.unusable]
    if "," in str(name):
        hints += ["give one name; --op can be repeated"]
    if not hints:
        own = "make one of your own known by --operator module:NAME, in Python by "
        own += 'oracle.operators.OPERATORS.add("module:NAME")'
        hints = [own, f"`aclnn-oracle info` lists the {len(OPERATORS)} known"]
    return OracleError(f"unknown operator {name!r}; {'; '.join(hints)}")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


@cache
def pages() -> tuple[str, ...]:
    """Return the names of this package's modules that are operator pages, in alphabetical order."""
    result = (m.name for m in pkgutil.iter_modules([str(Path(__file__).parents[1])]) if not m.ispkg)
    return tuple(sorted(result))


def _folder(module: object) -> Path:
    return Path(str(getattr(module, "__file__", "."))).resolve().parent


def _imported(text: str, origin: str) -> Operator:
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise OracleError(f"{origin}: write module:NAME, for example my_op_backward:OPERATOR")
    result = attribute_of(origin, module, name, first=True)
    if not isinstance(result, Operator):
        raise OracleError(f"{origin}: {name} is a {type(result).__name__}; it must be an oracle.operators.Operator")
    return result


OPERATORS = Registry()
