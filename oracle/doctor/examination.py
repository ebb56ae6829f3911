"""The whole examination, in the order of dependencies (the machine first), and the archive to send to somebody."""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..cann.abi import closed_devices, device_files
from ..cann.discovery import VARIABLES, VISIBLE, Toolkit, check_visible_devices, find_toolkit
from ..emulator.toolkit import find_compiler
from ..model.errors import OracleError, writing
from ..system.cache import home
from ..system.process import version_of
from .probe import Finding, calls, failed, known, ok, probe, warning

# Checks without calls of CANN: its folder and version, the driver, the devices' files, the packages.

# The only variables of the environment that a report may show.
NAMED = (*VARIABLES, "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "LD_LIBRARY_PATH", VISIBLE, "ASCEND_VISIBLE_DEVICES")
DRIVER = Path("/usr/local/Ascend/driver/version.info")
FIRMWARE = Path("/usr/local/Ascend/firmware/version.info")
SET_ENV = "`source <CANN>/set_env.sh` of an installed CANN"
SMI_LIMIT = 30.0  # seconds for npu-smi: with a broken driver it hangs


def present() -> bool:
    """Return whether any part of an NPU's software or hardware is here: a device, a driver, a CANN or its variables."""
    if device_files() or DRIVER.is_file() or any(os.environ.get(name) for name in VARIABLES):
        return True
    try:
        find_toolkit()
    except OracleError:
        return False
    return True


def found_toolkit() -> tuple[Finding, Toolkit | None]:
    """Return the folder and version of CANN, or what to set."""
    try:
        result = find_toolkit()
    except OracleError as error:
        named = any(os.environ.get(name, "").strip() for name in VARIABLES)
        return (failed if named else warning)("CANN", str(error)), None
    emulated = " (emulated)" if result.emulated else ""
    if not result.version:
        return warning("CANN", f"{result.root} ({result.named_by}) does not report its version{emulated}"), result
    return ok("CANN", f"{result.root} ({result.named_by}), version {result.version}{emulated}"), result


def environment(emulated: bool) -> Iterator[Finding]:
    """Yield the problems of the environment variables."""
    opp = os.environ.get("ASCEND_OPP_PATH", "").strip()
    if not opp:
        yield warning("ASCEND_OPP_PATH", "is not set: CANN does not find its kernels", SET_ENV)
    elif not Path(opp).is_dir():
        yield failed("ASCEND_OPP_PATH", f"{opp} is no folder: CANN does not find its kernels", SET_ENV)
    elif not emulated and not any(Path(opp).iterdir()):
        yield failed("ASCEND_OPP_PATH", f"{opp} is empty", "install the kernels package of the product")
    try:
        check_visible_devices()
    except OracleError as error:
        yield failed(VISIBLE, str(error), "set it anew, or unset it to see all devices")


def driver() -> Iterator[Finding]:
    """Yield the driver's and the firmware's versions and whether they fit, and the devices' files and health."""
    versions = info(DRIVER)
    files = device_files()
    if not versions and not files:
        yield warning("driver", f"none: no {DRIVER} and no /dev/davinci*", "install the driver, or mount it and the "
                      "devices into the container")  # fmt: skip
        return
    said = versions.get("package_version") or versions.get("version", "")
    if said:
        yield ok("driver", f"{said} ({DRIVER})")
    else:
        yield warning("driver", f"{DRIVER} is not readable here", "mount /usr/local/Ascend/driver into the container")
    yield from _firmware(versions.get("compatible_version_fw", ""))
    yield from _files(files)
    yield from _health()


def info(path: Path) -> dict[str, str]:
    """Return the KEY=VALUE lines of a package's version.info, keys in lower case; {} if there is no such file."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _firmware(compatible: str) -> Iterator[Finding]:
    result = info(FIRMWARE)
    said = result.get("version", "")
    if not said:
        return
    limits = re.fullmatch(r"\[([\d.]+),([\d.]+)\]", compatible)
    if limits and not _numbers(limits[1]) <= _numbers(said)[:3] <= _numbers(limits[2]):
        yield failed(
            "firmware",
            f"{said}, and the driver works with {limits[1]} to {limits[2]}",
            "install the firmware of the driver's release",
        )
    else:
        yield ok("firmware", said)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _files(files: list[Path]) -> Iterator[Finding]:
    if not files:
        yield failed(
            "devices", "the driver is installed and there is no /dev/davinci*",
            "is the driver loaded (`npu-smi info`)? In a container: pass the devices to it",
        )  # fmt: skip
        return
    closed = list(closed_devices())
    if closed:
        names = ", ".join(map(str, closed))
        yield failed(
            "devices",
            f"this user may not open {names}",
            "join the group that owns them (often HwHiAiUser), log in anew",
        )
    else:
        yield ok("devices", ", ".join(map(str, files)))


def _health() -> Iterator[Finding]:
    """Yield the devices' health, as npu-smi reports it."""
    if shutil.which("npu-smi") is None:
        yield warning("npu-smi", "not found", "it comes with the driver; in a container, mount /usr/local/bin/npu-smi")
        return
    try:
        done = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, timeout=SMI_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        yield failed("npu-smi", f"`npu-smi info` did not answer in {SMI_LIMIT:.0f} s", "restart the driver or the host")
        return
    words = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode != 0:
        said = words[-1] if words else f"exit status {done.returncode}"
        yield failed("npu-smi", f"`npu-smi info` failed: {said}", "the driver does not work: reinstall it or restart")
        return
    ill = [line.strip(" |") for line in words if re.search(r"\|\s*(Alarm|Warning|Critical|UNKNOWN)\s*\|", line)]
    for line in ill:
        yield failed("health", f"npu-smi: {line}", "`npu-smi info -t health -i N` says more; take another device")
    if not ill:
        well = sum(1 for line in words if re.search(r"\|\s*OK\s*\|", line))
        yield ok("health", f"`npu-smi info` calls {well} devices OK")


def packages(npu: bool) -> Iterator[Finding]:
    """Yield the versions of Python and its packages, and whether torch and torch_npu fit.

    A missing torch_npu is reported only if this machine has a part of an NPU (``npu``).
    """
    result = {name: version_of(name) for name in ("aclnn-oracle", "numpy", "ml-dtypes", "torch", "torch_npu")}
    needed = ", ".join(f"{name} {result[name]}" for name in ("aclnn-oracle", "numpy", "ml-dtypes") if result[name])
    yield ok("Python", f"{platform.python_version()} on {platform.machine()}, {needed}")
    torch, torch_npu = result["torch"], result["torch_npu"]
    if not torch_npu or importlib.util.find_spec("torch_npu") is None:
        if npu:
            yield warning(
                "torch_npu", "not installed: of the backends on the NPU only aclnn can be used",
                f"pip install torch_npu=={_release(torch)}" if torch else "pip install torch torch_npu, of one version",
            )  # fmt: skip
    elif not torch:
        yield failed("torch_npu", f"{torch_npu} without torch", f"pip install torch=={_release(torch_npu)}")
    elif _release(torch) != _release(torch_npu):
        wanted = f"pip install torch_npu=={_release(torch)}, or torch=={_release(torch_npu)}"
        yield failed("torch_npu", f"torch {torch} and torch_npu {torch_npu} are not of one version", wanted)
    else:
        yield ok("torch_npu", f"torch {torch}, torch_npu {torch_npu}")


def _release(text: str) -> str:
    """Return the version x.y.z, in which torch and torch_npu must agree."""
    result = re.match(r"\d+\.\d+\.\d+", text)
    return result[0] if result else text


# The archive to send to somebody: findings, a smoke record and logs, without data and with shortened paths.

SMOKE_LIMIT = 1200.0  # seconds of the smoke run
LOGS, LOG_BYTES = 3, 200_000  # the number of newest logs, and the bytes from the end of each


def pack(target: Path, findings: Iterable[Finding], *, backend: str = "", soc: str = "", emulate: bool = False) -> None:
    """Write a .tar.gz: doctor.txt, environment.txt, the logs and, with a backend, the record of a smoke run.

    Raises OracleError if it cannot be written.
    """
    lines = [line for finding in findings for line in finding.lines()]
    variables = "".join(f"{name}={os.environ.get(name, '(not set)')}\n" for name in NAMED)
    members = {"doctor.txt": "\n".join(lines) + "\n", "environment.txt": variables}
    members |= dict(_logs())
    if backend:
        members |= _smoke(backend, soc, emulate=emulate)
    with writing(f"--pack {target}"), tarfile.open(target, "w:gz") as archive:
        for name, text in members.items():
            body = shortened(text).encode()
            member = tarfile.TarInfo(f"doctor/{name}")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))


def shortened(text: str) -> str:
    """Replace folders that show a person's name or place: home, the current folder, the temporary folder."""
    here, temporary = str(Path.cwd()), tempfile.gettempdir()
    for folder, short in sorted({here: ".", str(home()): "~", temporary: "<tmp>"}.items(), key=lambda p: -len(p[0])):
        if len(folder) > 1:
            text = re.sub(re.escape(folder) + r"(?![\w.-])", short, text)
    return text


def _logs() -> Iterator[tuple[str, str]]:
    """Yield the ends of CANN's newest logs."""
    folder = Path(os.environ.get("ASCEND_PROCESS_LOG_PATH", "") or home() / "ascend" / "log")
    result = [path for path in folder.rglob("*.log") if path.is_file()] if folder.is_dir() else []
    for path in sorted(result, key=lambda path: path.stat().st_mtime)[-LOGS:]:
        yield f"logs/{path.name}", path.read_bytes()[-LOG_BYTES:].decode(errors="replace")


def _smoke(backend: str, soc: str, *, emulate: bool) -> dict[str, str]:
    """Run the smoke tier; return its record and the end of its output."""
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


def examine(*, emulate: bool = False) -> Iterator[Finding]:
    """Yield each finding as soon as it is made. ``emulate``: the environment is that of the emulated CANN."""
    npu = present()
    yield from packages(npu)
    if not npu:
        yield warning(
            "NPU", "there is none on this machine: no device, no driver, no CANN",
            f"where there is one: {SET_ENV}; in a container, pass the devices and the driver to it",
        )  # fmt: skip
        yield _instead()
        return
    finding, toolkit = found_toolkit()
    yield finding
    emulated = toolkit is not None and toolkit.emulated
    if not emulated:
        yield from driver()
    if toolkit is None:
        yield _instead()
        return
    yield from environment(emulated)
    findings, soc = probe()
    yield from findings
    if not soc:
        return
    ops = known(emulated)
    yield from calls("aclnn", soc, emulate=emulate, ops=ops)
    if importlib.util.find_spec("torch_npu") is not None:
        yield from calls("torch_npu", soc, emulate=emulate, ops=ops)


def _instead() -> Finding:
    """Return the finding that names the possible backends on a machine without an NPU."""
    backends = "backends cpu and torch" if importlib.util.find_spec("torch") is not None else "backend cpu"
    try:
        return ok("instead", f"{backends}, and the emulated CANN: --emulate builds it with {find_compiler()}")
    except OracleError as error:
        return warning("instead", f"{backends}; {error}")
