"""The hosts that pytest-xdist's workers run on: this one, or others over ssh (``--tx ssh=...``) or a socket.

The workers of one host share its devices, so a worker's place among those of its host decides which one it has, not its
number among all. A worker that took the place of one that died has its device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..model.errors import OracleError

RESTARTS = 4  # of a worker, as xdist allows with -n


class Hosts:
    """Where the workers of a run are, known to the process that owns the terminal."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}  # by worker; of those that died too
        self.roots: Sequence[Path] = ()  # folders that xdist copies to other hosts, each under its own name
        self._busy: dict[str, dict[int, str]] = {}  # by host and place: the worker

    def join(self, node: Any) -> int:
        """Return the place of a new worker among those of its host."""
        busy = self._busy.setdefault(host_of(node.gateway.spec), {})
        place = next(number for number in range(len(busy) + 1) if number not in busy)
        busy[place] = node.gateway.id
        self.places[node.gateway.id] = place
        self.roots = node.nodemanager.roots
        return place

    def leave(self, node: Any) -> None:
        """Free the place of a worker that has ended."""
        busy = self._busy.get(host_of(node.gateway.spec), {})
        for place in [place for place, worker in busy.items() if worker == node.gateway.id]:
            del busy[place]

    def file(self, rootdir: Path, name: str) -> Path:
        """Return the file that a worker's node id names, which on another host stands below a copied folder."""
        here = rootdir / name
        if not here.exists():
            for root in self.roots:
                if name.startswith(f"{root.name}/") and (root.parent / name).exists():
                    return root.parent / name
        return here


def host_of(spec: Any) -> str:
    """Return what names the host of an execnet specification; "" for this one."""
    return str(spec.via or spec.ssh or spec.vagrant_ssh or spec.socket or "")


def all_elsewhere(texts: Sequence[str]) -> bool:
    """Whether every worker of ``--tx`` is on another host: this one then only hands out."""
    return bool(texts) and all(any(f"{kind}=" in text for kind in ("ssh", "socket", "via")) for text in texts)


@contextmanager
def unreachable() -> Iterator[None]:
    """While xdist starts its workers: tell of a host that does not answer in one sentence. Raises OracleError."""
    from execnet.gateway_bootstrap import HostNotFound

    try:
        yield
    except HostNotFound as error:
        told = "no worker could be started there; the same words must work by hand: ssh HOST PYTHON -c 'import oracle'"
        raise OracleError(f"--tx: {error}: {told}") from None


def limit_restarts(config: pytest.Config) -> None:
    """Let xdist give up on workers that die before they run anything: only with -n it has a limit of its own."""
    texts = getattr(config.option, "tx", None) or ()
    if all_elsewhere(texts) and config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = str(RESTARTS * len(texts))
