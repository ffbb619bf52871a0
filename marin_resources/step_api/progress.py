"""Reports of a long function about its progress. A step's function, or a stage, calls:

    report_resumed(120)       once, before its first step of work: the checkpoint that it resumes from, or None
    report_step(121)          after each step of work; microseconds
    report_numbers({"loss": 3.2}, of=600)    numbers for people, and the number of all steps, if it is known
    report_checkpoint(150)    the checkpoint of step 150 is complete: another process could resume from it
    checkpoint_requested()    between two steps: whether its host is about to be taken away, so that it saves now

A `Step` with `progress_timeout_s` counts a function that reports no step within it as one that hangs. On slices the
record has the part of the work that was lost with a host, computed from the reports. `marin status` and the asset's
page show the progress of a step, its speed, and its numbers. In a process that is no worker's they do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol


class Listener(Protocol):
    """The receiver of a function's reports in the process of its step; they may come from any thread."""

    def resumed(self, step: int | None) -> None: ...

    def stepped(self, step: int) -> None: ...

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None: ...

    def saved(self, step: int) -> None: ...

    def save_requested(self) -> bool: ...


class Unheard:
    """No one listens."""

    def resumed(self, step: int | None) -> None: ...

    def stepped(self, step: int) -> None: ...

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None: ...

    def saved(self, step: int) -> None: ...

    def save_requested(self) -> bool:
        return False


@dataclass(frozen=True)
class Renewing(Unheard):
    """Each report renews a time limit."""

    renew: Callable[[], None]

    def resumed(self, step: int | None) -> None:
        self.renew()

    def stepped(self, step: int) -> None:
        self.renew()


@dataclass(frozen=True)
class Several:
    """Several listen."""

    listeners: tuple[Listener, ...]

    def resumed(self, step: int | None) -> None:
        for listener in self.listeners:
            listener.resumed(step)

    def stepped(self, step: int) -> None:
        for listener in self.listeners:
            listener.stepped(step)

    def numbers(self, numbers: Mapping[str, float], of: int | None) -> None:
        for listener in self.listeners:
            listener.numbers(numbers, of)

    def saved(self, step: int) -> None:
        for listener in self.listeners:
            listener.saved(step)

    def save_requested(self) -> bool:
        return any(listener.save_requested() for listener in self.listeners)


_listener: Listener = Unheard()


def report_resumed(step: int | None) -> None:
    """Report that the work resumes from the checkpoint of this step; None: from its beginning."""
    _listener.resumed(step)


def report_step(step: int) -> None:
    """A step of work is done."""
    _listener.stepped(step)


def report_numbers(numbers: Mapping[str, float], *, of: int | None = None) -> None:
    """The newest numbers of the work, which replace those before, and the number of all its steps."""
    _listener.numbers(numbers, of)


def report_checkpoint(step: int) -> None:
    """The checkpoint of a step is complete."""
    _listener.saved(step)


def checkpoint_requested() -> bool:
    """Whether a checkpoint is to be made now: the host, or a peer of its slice, is taken away soon.

    Call it on host 0, between two steps, and let the others follow it: their answers may come a step later.
    """
    return _listener.save_requested()


@contextmanager
def reports_to(listener: Listener) -> Iterator[None]:
    """Pass on the reports of this process to `listener` while the block runs."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
