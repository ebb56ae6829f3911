"""Work shared out through ``concurrent.futures``: to this process, to processes of this machine, or to the workers of a
Dask cluster (``--cluster tcp://SCHEDULER:8786``, extra ``cluster``).

What is shared out is a function of a module of this package and one argument that pickles, and it depends on nothing
else: so it does not matter where it runs, or that it runs again because its worker died. Every piece of work is counted
once, when its future is done.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
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
from dataclasses import dataclass
from typing import Any, TypeVar

from .model.errors import OracleError
from .system.cache import code_digest
from .system.memory import keep_freed

A = TypeVar("A")
R = TypeVar("R")
AHEAD = 4  # pieces of work per worker that are under way or done and not yet taken
WAIT_S = 60  # for the first worker of a cluster


class Lost(OracleError):
    """A piece of work whose workers are gone, however often it was tried."""


class _Here(Executor):
    """Runs the work in this process, when it is asked for."""

    def submit(self, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Workers:
    """Who does the work. ``prepare``: called in the worker's process before each piece (it remembers what it did)."""

    executor: Executor
    count: int
    where: str = "this process"
    prepare: Callable[[], None] | None = None
    code: str = ""  # the digest that the code of a worker elsewhere must have

    @property
    def is_here(self) -> bool:
        return isinstance(self.executor, _Here)

    def in_order(
        self, function: Callable[[A], R], work: Iterable[A], lost: Callable[[A, OracleError], R] | None = None
    ) -> Iterator[R]:
        """Yield the result of every piece in the order of the work; few are under way at a time.

        ``lost`` gives the result of a piece that ended every worker that had it; without it that is an OracleError.
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
            _cancel(future for _, future in under_way)

    def _settled(self, argument: A, future: Future[R], lost: Callable[[A, OracleError], R] | None) -> R:
        try:
            return self._result(future)
        except Lost as error:
            if lost is None:
                raise
            return lost(argument, error)

    def as_done(self, function: Callable[[A], R], work: Sequence[A]) -> Iterator[R]:
        """Yield the result of every piece as soon as it is there; the first pieces are started first."""
        if self.is_here:
            yield from self.in_order(function, work)
            return
        pending = {self._submit(function, argument) for argument in work}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield self._result(future)
        finally:
            _cancel(pending)

    def _submit(self, function: Callable[[A], R], argument: A) -> Future[R]:
        try:
            return self.executor.submit(_do, self.code, self.prepare, function, argument)
        except Exception as error:  # the pool is broken, or the scheduler is gone
            raise self._lost(error) from error

    def _result(self, future: Future[R]) -> R:
        try:
            return future.result()
        except (CancelledError, BrokenExecutor) as error:
            raise self._lost(error) from error
        except Exception as error:
            if type(error).__module__.startswith("distributed."):  # KilledWorker, CommClosedError
                raise self._lost(error) from error
            raise

    def _lost(self, error: BaseException) -> Lost:
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        return Lost(f"{self.where}: the work was lost: {told}")


HERE = Workers(_Here(), 1)  # this process does the work itself


def _do(code: str, prepare: Callable[[], None] | None, function: Callable[[A], R], argument: A) -> R:
    """One piece of work, in the worker's process."""
    if code and code != code_digest():
        raise OracleError(f"a worker of the cluster ({os.uname().nodename}) has another version of aclnn-oracle")
    if prepare is not None:
        prepare()
    return function(argument)


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


@contextmanager
def workers(
    jobs: int = 1, cluster: str | None = None, *, prepare: Callable[[], None] | None = None
) -> Iterator[Workers]:
    """Give the workers of a cluster, or ``jobs`` processes of this machine (1: this process itself).

    Raises OracleError where the cluster cannot be reached. On the way out work that has not begun is given up.
    """
    if cluster is not None:
        with _dask(cluster) as (executor, count):
            yield Workers(executor, count, f"--cluster {cluster}", prepare, code_digest())
    elif jobs <= 1:
        yield Workers(_Here(), 1, prepare=prepare)
    else:
        with _processes(jobs) as executor:
            yield Workers(executor, jobs, "a process of this machine", prepare)


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    context: Any = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=alone)
    try:
        yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()  # what it does now is not wanted any more
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def alone() -> None:
    """A process among several leaves Ctrl-C to its parent, keeps the memory that it frees, and computes on one thread:
    the others have theirs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed()
    os.environ["ACLNN_ORACLE_THREADS"] = "1"


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        from distributed import Client
    except ImportError:
        told = "needs Dask: pip install 'aclnn-oracle[cluster]'"
        raise OracleError(f"--cluster {address}: {told}") from None
    try:
        client = Client(address, timeout=WAIT_S, set_as_default=False)
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=WAIT_S)
    except (OSError, ValueError, TypeError) as error:
        raise OracleError(f"--cluster {address}: no scheduler answers there: {error}") from None
    try:
        count = sum(client.nthreads().values())
        if not count:
            raise OracleError(f"--cluster {address}: the scheduler had no worker within {WAIT_S} s")
        yield client.get_executor(pure=False), count
    finally:
        client.close()
