"""``aclnn-oracle info``: versions, backends, variables, SoCs with their documented support, the catalogue, devices."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from ..backends import BUILTIN, installed, load
from ..cann.library import describe
from ..catalogue import TIERS, default_dir, digest, files, load as load_catalogue
from ..catalogue.measure import builtin_counts, counted
from ..model.aclnn import DEFAULT_SOC, PLATFORMS
from ..model.errors import OracleError, suggestion
from ..numerics.compiled.engine import requested
from ..numerics.floats.blocks import block_size, thread_count
from ..numerics.orders.formula import Formula
from ..numerics.orders.given import NOT_JUDGED
from ..operators import OPERATORS
from ..operators.answers.parts import accepted_dtypes, checks_of, served_dtypes
from ..operators.answers.registry import operator_named
from ..operators.definition.operator import Operator
from ..operators.definition.roles import Role
from ..run.session import versions
from ..standards import STANDARDS
from ..system.process import BLOCK, ENGINE, FRAMEWORKS, THREADS, Variable, extra_of, version_of
from . import Subparsers

# Products in the public documents that support none of the operators; they are no SoCs of this project.
UNSUPPORTED = {"ascend310b": "Atlas 200I/500 A2 inference", "ascend310": "Atlas 200/300/500 inference"}
_PREFIX = "ACLNN_ORACLE_"  # begins the name of every variable of this package


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "info",
        description="Show the installed versions and the backends that can run (loads each of them), or everything "
        "about one operator: parameters with their roles, dtypes per SoC, checks in order, formula, orders, sources.",
    )
    parser.add_argument("operator_name", nargs="?", metavar="OPERATOR", help="by its aclnn name or as ids begin")
    parser.set_defaults(run=show_info)


def show_info(args: argparse.Namespace) -> int:
    """Print everything, or the details of one operator."""
    if args.operator_name is not None:
        for line in _operator(operator_named(args.operator_name)):
            print(line)
        return 0
    for title, lines in (
        ("versions", _versions()),
        ("backends", _backends()),
        ("CANN", describe()),
        ("environment variables: speed, never results", _variables()),
        ("SoCs", _socs()),
        (f"operators: dtypes with a golden on {DEFAULT_SOC}, documented SoCs", _operators()),
        ("catalogue", _catalogue()),
        ("standards", [", ".join(STANDARDS)]),
    ):
        print(title)
        for line in lines:
            print(f"  {line}")
        print()
    return 0


def _operator(op: Operator) -> Iterator[str]:
    """Yield the lines about an operator, as its page declares it."""
    yield f"{op.name}   (case ids begin with {op.slug}/; page {op.checks.__module__})"
    page = (sys.modules[op.checks.__module__].__doc__ or "").strip()
    yield from (f"  {line}".rstrip() for line in page.splitlines())
    yield "parameters, in the order of GetWorkspaceSize"
    for p in op.parameters:
        role = p.role.name if isinstance(p.role, Role) else p.role or ""
        words = [p.kind, str(role), f"symbol {p.symbol}" if p.symbol else "", "optional" if p.optional else "",
                 "" if p.read else "never read",
                 f"{p.c}{'' if p.plain == 'usual' else f', usually {p.plain}'}" if p.kind == "attr" else "",
                 f"one of {p.words_text}" if p.words else ""]  # fmt: skip
        yield f"  {p.name:<16} {'; '.join(filter(None, words))}"
    yield "dtypes that all operands may have (with a golden; others accepted), and whether the documents list the SoC"
    for soc in PLATFORMS:
        served, accepted = served_dtypes(op, soc), accepted_dtypes(op, soc)
        others = [dtype for dtype in accepted if dtype not in served]
        more = f"; {', '.join(others)}" if others else ""
        yield f"  {soc:<14} {', '.join(served)}{more}{'' if soc in op.documented else '   (not documented)'}"
    yield f"checks of a valid call on {DEFAULT_SOC}, in their order" + (f" (source: {op.source})" if op.source else "")
    yield from (f"  {number:>2} {name}" for number, name in enumerate(checks_of(op, DEFAULT_SOC), 1))
    for each in op.each:
        if isinstance(each.computes, Formula):
            for name, formula in each.computes.formulas.items():
                yield f"{each.output}: {name}"
                yield from (f"  {line}" for line in inspect.cleandoc(inspect.getsource(formula)).splitlines())
        else:
            yield f"{each.output}: a given function; the strict layer says: {NOT_JUDGED}"
            yield from (
                f"  {line}" for line in inspect.cleandoc(inspect.getsource(each.computes.function)).splitlines()
            )


def _versions() -> Iterator[str]:
    for name, result in versions().items():
        yield f"{name:<14} {result}"
    for name in (*FRAMEWORKS, "pytest-xdist"):
        yield f"{name:<14} {version_of(name) or 'not installed'}"


def _backends() -> Iterator[str]:
    for name in BUILTIN:
        yield f"{name:<14} {_state(name)}"
    for name, point in installed().items():
        yield f"{name:<14} {_state(name)} (entry point {point.value} of {point.dist.name if point.dist else '?'})"
    yield "module:attribute   a class, factory or instance on sys.path"


def _state(name: str) -> str:
    """Say whether a backend loads, and how many devices it sees.

    A framework is only reported as installed: loading it takes seconds, and only a run or the doctor needs that.
    """
    if name == "replay":
        return "ready: --backend-option path=DIR, a folder made by --record-outputs"
    if name in FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            return f"needs the package {name}: {extra_of(name)}"
        return f"{name} is installed; a run loads it"
    try:
        backend = load(name)
    except OracleError as error:
        return str(error)
    count = getattr(backend, "devices", lambda: None)()
    device = getattr(backend, "device", "")
    close = getattr(backend, "close", None)
    if close is not None:
        close()
    words = [f"device {device}" if device else "", "" if count is None else f"{count} visible"]
    return ", ".join(["ready", *filter(None, words)])


def _variables() -> Iterator[str]:
    """Yield each variable's value and whether it is set, and set variables that are not used."""
    counting: dict[Variable, Callable[[], object]] = {ENGINE: requested, BLOCK: block_size, THREADS: thread_count}
    for variable, value in counting.items():
        try:
            said = "not set" if variable.text() is None else "set"
            yield f"{variable.name:<22}{f'{value()} ({said})':<18}{variable.meaning}"
        except OracleError as error:
            yield f"{variable.name:<22}{error}"
    known = [variable.name.removeprefix(_PREFIX) for variable in counting]
    for name in sorted(os.environ):
        word = name.removeprefix(_PREFIX)
        if word != name and word not in known:
            yield f"{name:<22}is set, and nothing reads it{suggestion(word, known)}"


def _socs() -> Iterator[str]:
    for soc, result in PLATFORMS.items():
        mode = "saturates" if result.saturates else "inf/nan"
        mark = " (default)" if soc == DEFAULT_SOC else ""
        bf16 = "" if result.bfloat16 else ", no bfloat16"
        flushes = ", flushes subnormal numbers" if result.flushes else ""
        yield f"{soc:<14}{mode:<11}{result.product}{bf16}{flushes}{mark}"
    for soc, product in UNSUPPORTED.items():
        yield f"{soc:<14}{'':<11}{product}: no operator is supported (no --soc)"
    yield "No validator refuses a product: an unsupported one fails later, when its kernel is looked up (561xxx)."


def _operators() -> Iterator[str]:
    width = max(map(len, OPERATORS))
    for op in OPERATORS.values():
        served, accepted = served_dtypes(op, DEFAULT_SOC), accepted_dtypes(op, DEFAULT_SOC)
        more = [dtype for dtype in accepted if dtype not in served]
        dtypes = ", ".join(served) + (f" (accepted too: {', '.join(more)})" if more else "")
        missing = [soc for soc in PLATFORMS if soc not in op.documented]
        socs = f"all SoCs but {', '.join(missing)}" if missing else "all SoCs"
        lacks = [
            what
            for what, result in (("no kernel name", op.kernel), ("no aten function", op.aten and op.aten.call))
            if result is None
        ]
        origin = [] if op.is_built_in else [f"from {op.origin}"]
        yield f"{op.name:<{width}}  {'; '.join([dtypes, socs, *lacks, *origin])}"


def _catalogue() -> Iterator[str]:
    folder = default_dir()
    counts, problems = dict(builtin_counts()), {}
    for name in OPERATORS.folders():  # operators from outside
        try:
            counts.update(counted(load_catalogue(OPERATORS.catalogue_file(OPERATORS[name]))))
        except OracleError as error:
            problems[name] = str(error)
    tiers = {tier: TIERS[: TIERS.index(tier) + 1] for tier in TIERS}
    yield f"{folder}   sha256 {digest(files(folder))[:16]}; cases on {DEFAULT_SOC}"
    width = max(map(len, OPERATORS))
    for op in OPERATORS:
        own: Counter[str] = Counter()
        for of_dtype in counts.get(op, {}).values():
            own.update({tier: number for tier, (number, _) in of_dtype.items()})
        per_tier = [f"{tier} {sum(own[t] for t in within)}" for tier, within in tiers.items()]
        yield f"{op:<{width}}  {problems.get(op) or ', '.join(per_tier) + ' cases'}"
