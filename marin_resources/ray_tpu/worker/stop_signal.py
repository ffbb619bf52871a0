"""SIGTERM as Ray sends it to a job that is to stop: an exception in the main thread. After 3 s Ray kills the process.

    install()              from now on SIGTERM raises Stopped, once
    hold()                 not just now: what is being done is short, and must not be cut
    let_go(give_up)        now it may be raised again; at once, if the signal has come meanwhile
    taken()                the main thread sees to its end

A main thread that is in C for long, or that swallows the exception, does not come to see to its end. Then `give_up` is
called after a second, in another thread. In a process where nothing is installed all of this does nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

GRACE_S = 1.0


class Stopped(BaseException):
    """This process was told to end. No Exception, as a step's function might go on after one."""


class _Signal:
    """The signal of this process, and what is done about it."""

    def __init__(self) -> None:
        self.installed = False
        self.held = False
        self.pending = False
        self.received = threading.Event()
        """Set by a thread, so also where another library has put its own handler in place of ours."""
        self.taken = threading.Event()
        self.give_up: Callable[[], None] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.pending = True
        self.raise_if_due()

    def raise_if_due(self) -> None:
        if self.pending and not self.held and not self.taken.is_set():
            self.held = True  # once is enough
            raise Stopped

    def watch(self, pipe: int) -> None:
        while signal.SIGTERM not in os.read(pipe, 64):
            continue
        self.received.set()
        if not self.taken.wait(GRACE_S) and self.give_up is not None:
            self.give_up()


_now = _Signal()


def install() -> None:
    """To be called in the main thread."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _now.installed = True
    handle_again()
    threading.Thread(target=_now.watch, args=(reader,), name="stop-signal", daemon=True).start()
    os.register_at_fork(after_in_child=_forget)


def handle_again() -> None:
    """Be the one who handles the signal: a library may have put a handler of its own (Ray does, which then exits)."""
    if _now.installed and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _now.handle)


def hold() -> None:
    _now.held = True


def let_go(give_up: Callable[[], None]) -> None:
    _now.held, _now.give_up = False, give_up
    _now.raise_if_due()


def taken() -> None:
    _now.taken.set()
    _now.held = True


def received(within_s: float = 0.0) -> bool:
    """Whether this process was told to end."""
    return _now.installed and _now.received.wait(within_s)


def _forget() -> None:
    """A forked child is no worker: it ends as the one who forked it wants, and its signals are its own."""
    if _now.installed:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _now.installed = False
