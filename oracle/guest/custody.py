"""While a device runs, and after: what it does to the process costs its own case and nothing else.

A backend is code in our process. It may change the arithmetic (numerics/environment.py) and what belongs to the process
(process.py), leave by ``os._exit``, raise what is no Exception, or fork and come back twice. What was there before is
put back when the device returns, and told as a note of the case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import getpid  # a device may replace what os holds
from typing import Any, NoReturn

from ..model.text import bounded
from ..numerics.floats.environment import IeeeArithmetic, watched
from .belongings import Belongings, is_main

UNREADABLE = "(a text that cannot be read)"


class DeviceError(Exception):
    """The backend raised."""

    @property
    def raised(self) -> BaseException:
        """What it raised."""
        return self.__cause__ or self


class Left(Exception):
    """The device called ``os._exit``."""


def readable(value: Any) -> str:
    """Return a device's text as text that every file and terminal holds: 4 kB, control characters spelt out."""
    try:
        return bounded(str(value))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return UNREADABLE


def reason_of(error: BaseException) -> str:
    """Return an exception in words, also one whose own text raises."""
    return f"{readable(type(error).__name__)}: {readable(error)}".rstrip(": ")


@contextmanager
def guarded(*, may_leave: bool = False) -> Iterator[None]:
    """Let a device run that is trusted with the process: only what it raises is told apart from our own faults.

    Raises DeviceError for whatever it raises but KeyboardInterrupt. ``may_leave``: it may end this process.
    """
    owner = getpid()
    try:
        with _EXIT.held(owner, may_leave=may_leave):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, pytest's skip and exit, a device's own: all are its case's error
        raise DeviceError from error
    finally:
        if getpid() != owner:
            _EXIT.leave(1)  # a copy of this process that the device made and let return: the original goes on


@contextmanager
def loading(changed: list[str]) -> Iterator[None]:
    """Let a device be loaded or closed. ``changed`` gets what it changed, in words.

    Its arithmetic and environment variables stay as it set them, for itself; the rest is put back.
    """
    before = Belongings.lend()
    try:
        with watched(changed), guarded():
            yield
    finally:
        changed += before.restore(variables=False)


class Custody:
    """A case's hold on the process. Inside ``with``, arithmetic is IEEE 754's; inside ``device()`` it is the device's.

    ``notes``: what the device changed, each once. ``may_leave``: the process is the device's to end.
    """

    def __init__(self, *, may_leave: bool = False) -> None:
        self._arithmetic = IeeeArithmetic()
        self._may_leave = may_leave
        self.notes: list[str] = []

    def __enter__(self) -> Custody:
        self._arithmetic.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._arithmetic.__exit__()

    @contextmanager
    def device(self) -> Iterator[None]:
        """Let the device run. Raises DeviceError for whatever it raises but KeyboardInterrupt."""
        before = Belongings.lend()
        try:
            with self._arithmetic.device(), guarded(may_leave=self._may_leave):
                yield
        finally:
            changes = [*before.restore(), *self._arithmetic.changed]
            self.notes += [told for told in map(readable, changes) if told not in self.notes]


class _Exit:
    """``os._exit`` in the process of the run: a device that calls it ends its case, not the run as if all were well."""

    def __init__(self) -> None:
        self.leave = os._exit
        self._owner = 0  # the process that no device may end; 0 where none runs

    @contextmanager
    def held(self, owner: int, *, may_leave: bool) -> Iterator[None]:
        before, self._owner = (self._owner, os._exit), 0 if may_leave else owner
        os._exit = self.leave if may_leave else self.refuse
        try:
            yield
        finally:
            self._owner, os._exit = before

    def refuse(self, status: int) -> NoReturn:
        if getpid() != self._owner:
            self.leave(status)  # a child of the device's own, or a program that is done
        if not is_main():
            self.leave(status or 1)  # no exception would reach the run
        raise Left(f"os._exit({status!r}) in the process of the run")


_EXIT = _Exit()
