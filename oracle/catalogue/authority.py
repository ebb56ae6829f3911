"""On whose authority a case stands: its family's, the check's that decides its status, or the source's where a call is
accepted that the document does not allow, or on a product that it does not name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..model.authority import DEMANDED, DOCUMENT, SOURCE
from ..model.platforms import platform
from ..model.status import SUCCESS
from ..operators import OPERATORS
from ..operators.api import bound, decision
from .asked import arguments
from .case import Case


def authority_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the authority of a case on a SoC, under a version of CANN."""
    op = OPERATORS[case.op]
    if case.expected(soc, cann) != SUCCESS.name:
        deciding = decision(op.name, soc, cann, arguments(case))
        if deciding is not None and deciding.status is not None and not deciding.status.ok:
            return deciding.authority
    if case.authority not in ("", DOCUMENT):
        return case.authority
    if platform(soc, cann).soc not in op.documented:
        return SOURCE
    demands = () if op.demands is None else op.demands(bound(op, arguments(case)), platform(soc, cann))
    return SOURCE if any(check.status is not None for check in demands) else DOCUMENT


def demanded(cases: Iterable[Case], soc: str, cann: str = "") -> Iterator[Case]:
    """Yield the cases that the user's documents demand."""
    return (case for case in cases if authority_of(case, soc, cann) in DEMANDED)
