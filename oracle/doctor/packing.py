"""What to send to somebody: findings, a smoke record and logs, without data and with shortened paths."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..model.errors import OracleError
from ..system.cache import home
from . import machine
from .findings import Finding

SMOKE_LIMIT = 1200.0  # seconds of the smoke run
LOGS, LOG_BYTES = 3, 200_000  # how many of the newest logs, and how much of each one's end


def pack(target: Path, findings: Iterable[Finding], *, backend: str = "", soc: str = "", emulate: bool = False) -> None:
    """Write a .tar.gz: doctor.txt, environment.txt, the logs and, with a backend, the record of a smoke run.

    Raises OracleError where it cannot be written.
    """
    lines = [line for finding in findings for line in finding.lines()]
    members = {"doctor.txt": "\n".join(lines) + "\n", "environment.txt": "".join(_environment())}
    members |= dict(_logs())
    if backend:
        members |= _smoke(backend, soc, emulate=emulate)
    try:
        with tarfile.open(target, "w:gz") as archive:
            for name, text in members.items():
                body = shortened(text).encode()
                member = tarfile.TarInfo(f"doctor/{name}")
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    except OSError as error:
        raise OracleError(f"--pack {target}: cannot be written: {error.strerror or error}") from None


def shortened(text: str) -> str:
    """Replace the folders that say who and where somebody is: home, this folder, the temporary one."""
    here, temporary = str(Path.cwd()), tempfile.gettempdir()
    for folder, short in sorted({here: ".", str(home()): "~", temporary: "<tmp>"}.items(), key=lambda p: -len(p[0])):
        if len(folder) > 1:
            text = re.sub(re.escape(folder) + r"(?![\w.-])", short, text)
    return text


def _environment() -> Iterator[str]:
    for name in machine.NAMED:
        yield f"{name}={os.environ.get(name, '(not set)')}\n"


def _logs() -> Iterator[tuple[str, str]]:
    """The newest logs of CANN's, the end of each."""
    folder = Path(os.environ.get("ASCEND_PROCESS_LOG_PATH", "") or home() / "ascend" / "log")
    found = [path for path in folder.rglob("*.log") if path.is_file()] if folder.is_dir() else []
    for path in sorted(found, key=lambda path: path.stat().st_mtime)[-LOGS:]:
        yield f"logs/{path.name}", path.read_bytes()[-LOG_BYTES:].decode(errors="replace")


def _smoke(backend: str, soc: str, *, emulate: bool) -> dict[str, str]:
    """Run the smoke tier and return its record and what it printed last."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "smoke.jsonl"
        command = [sys.executable, "-m", "oracle.cli", "run", "--backend", backend, "--soc", soc, "--tier", "smoke"]
        command += ["--timeout-per-case", "120", "--record", str(record), "-q", "--no-header"]
        command += ["--emulate"] if emulate else []
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=SMOKE_LIMIT, check=False
            )
            said = f"exit status {done.returncode}\n{(done.stdout + done.stderr)[-20_000:]}"
        except subprocess.TimeoutExpired:
            said = f"not finished within {SMOKE_LIMIT:.0f} s\n"
        text = record.read_text() if record.exists() else ""
    return {"smoke.jsonl": text, "smoke.txt": said}
