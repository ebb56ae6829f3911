"""Work distributed by ``concurrent.futures``: in this process, over processes of this machine, or over a Dask cluster.

A cluster is given by ``--cluster tcp://SCHEDULER:8786`` (extra ``cluster``). A piece of work is a function of a module
of this package and one argument that pickles. It depends on nothing else. So it can run anywhere, and run again if its
worker dies. Every piece of work counts once, when its future is done.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .model.errors import OracleError, OracleWarning
from .system.cache import code_digest
from .system.process import keep_freed

A = TypeVar("A")
R = TypeVar("R")
AHEAD = 4  # pieces of work per worker that are running, or done and not yet taken
WAIT_S = 10  # for a scheduler, for its first worker, and between checks that they are alive
NAMED = 5  # workers in a message


class Lost(OracleError):
    """A piece of work that was lost, because its workers ended in every attempt."""


class _Here(Executor):
    """Runs the work in this process, at ``submit``."""

    def submit(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Workers:
    """The workers. ``prepare``: called in the worker's process before each piece (it remembers its earlier calls)."""

    executor: Executor
    count: int
    where: str = "this process"
    prepare: Callable[[], None] | None = None
    alive: Callable[[], bool] | None = None  # of a cluster: whether it still has workers for this work
    left_out: str = ""  # the workers of a cluster that get no work, and why

    @property
    def is_here(self) -> bool:
        return isinstance(self.executor, _Here)

    def in_order(
        self, function: Callable[[A], R], work: Iterable[A], lost: Callable[[A, OracleError], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of every piece in the order of the work; few pieces run ahead at a time.

        ``lost`` gives the result of a piece whose workers are gone; without it an OracleError is raised.
        """
        under_way: deque[tuple[A, Future[R]]] = deque()
        try:
            for argument in work:
                under_way.append((argument, self._submit(function, argument)))
                if self.is_here or len(under_way) >= AHEAD * self.count:
                    yield self._settled(*under_way.popleft(), lost)
            while under_way:
                yield self._settled(*under_way.popleft(), lost)
        finally:
            for _, future in under_way:
                future.cancel()

    def _settled(self, argument: A, future: Future[R], lost: Callable[[A, OracleError], R] | None) -> R:
        try:
            return self._result(future)
        except Lost as error:
            if lost is None:
                raise
            return lost(argument, error)

    def as_completed(self, function: Callable[[A], R], work: Sequence[A]) -> Iterator[R]:
        """Yield the result of every piece as soon as it is done; the first pieces start first."""
        if self.is_here:
            yield from self.in_order(function, work)
            return
        pending = {self._submit(function, argument) for argument in work}
        try:
            while pending:
                done, pending = wait(pending, self._patience, return_when=FIRST_COMPLETED)
                if not done:
                    self._require_alive()
                for future in done:
                    yield self._result(future)
        finally:
            for future in pending:
                future.cancel()

    def _submit(self, function: Callable[[A], R], argument: A) -> Future[R]:
        try:
            return self.executor.submit(_do, self.prepare, function, argument)
        except Exception as error:  # the pool is broken, or the scheduler is gone
            raise self._lost(error) from error

    @property
    def _patience(self) -> float | None:
        return None if self.alive is None else WAIT_S

    def _require_alive(self) -> None:
        """Raise Lost if a cluster has no worker left that can do the work: the future would never be done."""
        if self.alive is not None and not self.alive():
            raise Lost(f"{self.where}: the work was lost: the scheduler, or every worker that could do it, is gone")

    def _result(self, future: Future[R]) -> R:
        while not wait([future], self._patience).done:
            self._require_alive()
        try:
            return future.result()
        except (CancelledError, BrokenExecutor) as error:
            raise self._lost(error) from error
        except Exception as error:
            if type(error).__module__.startswith("distributed."):  # KilledWorker, CommClosedError
                raise self._lost(error) from error
            raise

    def _lost(self, error: BaseException) -> Lost:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        return Lost(f"{self.where}: the work was lost: {text}")


HERE = Workers(_Here(), 1)  # this process does the work itself


def _do(prepare: Callable[[], None] | None, function: Callable[[A], R], argument: A) -> R:
    """Do one piece of work, in the worker's process."""
    if prepare is not None:
        prepare()
    return function(argument)


@contextmanager
def workers(
    jobs: int = 1, cluster: str | None = None, *, prepare: Callable[[], None] | None = None
) -> Iterator[Workers]:
    """Provide the workers of a cluster, or ``jobs`` processes of this machine (1: this process itself).

    Raises OracleError if the cluster cannot be reached. At the end, work that has not begun is cancelled.
    """
    if cluster is not None:
        with _dask(cluster) as result:
            if result.left_out:
                warnings.warn(result.left_out, OracleWarning, stacklevel=3)
            yield replace(result, prepare=prepare)
    elif jobs <= 1:
        yield Workers(_Here(), 1, prepare=prepare)
    else:
        with _processes(jobs) as executor:
            yield Workers(executor, jobs, "a process of this machine", prepare)


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    context: Any = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare_pool_worker)
    try:
        yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()  # its current work is no longer needed
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def prepare_pool_worker() -> None:
    """Prepare a process that is one of several: its parent handles Ctrl-C, it keeps freed memory, and it computes on
    one thread because the others have theirs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed()
    os.environ["ACLNN_ORACLE_THREADS"] = "1"


@contextmanager
def _dask(address: str) -> Iterator[Workers]:
    """Provide the workers of a cluster that have this version. Raises OracleError after one attempt."""
    where = f"--cluster {address}"
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise OracleError(f"{where}: needs Dask: pip install 'aclnn-oracle[cluster]'") from None
    try:
        get_address_host_port(address)  # a client with a wrong address raises, but keeps trying
        client = Client(address, timeout=WAIT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise OracleError(f"{where}: no scheduler answers there: {error}") from None
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=WAIT_S)
        threads: dict[str, int] = client.nthreads()
        if not threads:
            raise OracleError(f"{where}: the scheduler had no worker within {WAIT_S} s")
        right, others = _versions(client, threads)
        if not right:
            raise OracleError(f"{where}: no worker can do the work: {others}")

        def alive() -> bool:
            return client.status == "running" and any(name in right for name in client.scheduler_info()["workers"])

        executor = client.get_executor(pure=False, workers=right)
        text = f"{where}: {others}; they get no work" if others else ""
        yield Workers(executor, sum(threads[name] for name in right), where, alive=alive, left_out=text)
    finally:
        client.close()


def _versions(client: Any, workers: Iterable[str]) -> tuple[list[str], str]:
    """Return the workers of a cluster that have this version of the package, and a text about the others."""
    result = client.run(code_digest, on_error="return")
    right = [name for name in workers if result.get(name) == code_digest()]
    wrong = sorted(name for name in workers if name not in right)
    named = ", ".join(wrong[:NAMED]) + (f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else "")
    return right, f"another version of aclnn-oracle, or none, is on {named}" if wrong else ""
