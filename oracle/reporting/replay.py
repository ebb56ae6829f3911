"""The command that runs one case again, for cases whose record line does not carry one."""

from __future__ import annotations

import shlex

from ..record.reader import CaseRecord, RunHeader


def suffix(header: RunHeader) -> str:
    """The options after the case id: those the run line names, or what can be told from its other fields."""
    if header.replay_arguments:
        return shlex.join(header.replay_arguments)
    options = [
        ("--backend", header.backend),
        *(("--backend-option", f"{key}={value}") for key, value in header.backend_options.items()),
        ("--soc", header.soc),
        ("--standard", header.standard),
        ("--seed", "" if header.seed is None else str(header.seed)),
    ]
    return " ".join(f"{name} {shlex.quote(value)}" for name, value in options if value)


def command_for(case: CaseRecord, header: RunHeader) -> str:
    """The recorded replay command of a case, or one made from the run line."""
    if case.detail is not None and case.detail.replay:
        return case.detail.replay
    return f"aclnn-oracle replay {shlex.quote(case.id)} {suffix(header)}".rstrip()
