"""A process's run, from the command line and, in a worker, from what its controller knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..backends import require_known
from ..model.errors import OracleError, unknown
from ..reporting.formats import format_of, require_other
from ..reporting.language.translate import LANGUAGES, Language
from ..settings.options import PROPERTY, Invocation
from ..settings.settings import settings_of
from ..system.memory import keep_freed
from .choosing import chosen_by
from .earlier import Earlier
from .session import Run


def start(config: pytest.Config) -> Run:
    """Return the run. Raises OracleError for a wrong option: at once, because collecting takes seconds."""
    keep_freed()
    given = vars(config.option)
    told: dict[str, Any] | None = getattr(config, "workerinput", {}).get(PROPERTY)
    settings = settings_of(given)
    if told is None:
        require_known(settings.backend)  # a worker that does not know it answers so for every case
    language, path = language_of(given), report_path(config)
    if path is not None:
        format_of(path)
    texts = getattr(config.option, "tx", None) or ()
    if any(kind in text for text in texts for kind in ("ssh=", "socket=", "via=")):
        raise OracleError(
            f"--tx {' '.join(texts)}: workers on other hosts are not supported; share a run out with --shard"
        )
    if settings.cluster is not None and getattr(config.option, "dist", "no") != "no":
        raise OracleError("--cluster and -n: give one of them; the cluster has its own workers")
    if told is None:
        earlier = _earlier(config)
        continued = None if earlier is None else earlier.continued
        record = _record_path(config) if continued is None else continued.path
        if path is not None and record is not None:
            require_other(path, [record])
        alone = settings.for_worker("main")
        return Run(alone, record, command(config), language, chosen_by=chosen_by(config), earlier=earlier)
    worker: Any = config
    settings = replace(settings, devices=settings.devices or tuple(told["devices"]))
    name = str(worker.workerinput["workerid"])
    settings = settings.for_worker(name, int("".join(filter(str.isdigit, name)) or 0))
    failed = None if told["failed"] is None else frozenset(told["failed"])
    earlier = Earlier(frozenset(told["ended"]), failed)
    return Run(settings, backend_name=told["backend"], language=language, earlier=earlier)


def report_path(config: pytest.Config) -> Path | None:
    """Return where the report goes, if anywhere."""
    text = getattr(config.option, "oracle_report", None)
    return None if text is None else Path(text)


def language_of(given: dict[str, Any]) -> Language:
    code = given.get("oracle_lang") or "en"
    if code not in LANGUAGES:
        raise unknown("language", code, LANGUAGES)
    return LANGUAGES[code]


def _record_path(config: pytest.Config) -> Path | None:
    """The record of --record; a report alone has one beside it."""
    text, report = getattr(config.option, "oracle_record", None), report_path(config)
    if text is None:
        return None if report is None else report.with_suffix(".jsonl")
    return Path(text)


def _earlier(config: pytest.Config) -> Earlier | None:
    """Read the record of --resume or --rerun-failed."""
    resume, failed = config.option.oracle_resume, config.option.oracle_rerun_failed
    if resume is None and failed is None:
        return None
    if resume is not None and failed is not None:
        raise OracleError("--resume and --rerun-failed: give one of them")
    if resume is None:
        return Earlier.to_rerun(failed)
    if config.option.oracle_record not in (None, resume):
        raise OracleError(f"--resume {resume} goes on writing that record; leave --record out")
    return Earlier.to_resume(resume)


def command(config: pytest.Config) -> list[str]:
    """Return the command that was typed."""
    for plugin in config.invocation_params.plugins or ():
        if isinstance(plugin, Invocation):
            return plugin.command
    return ["pytest", *map(str, config.invocation_params.args)]
