"""SIGTERM, which Ray sends to stop a job, as an exception in the main thread. Ray kills the process 3 s later.

    install()              from now on SIGTERM raises Stopped in the main thread, once
    block()                delay the exception: a short section must not be interrupted
    unblock(on_ignored)    deliver it again; at once if the signal arrived while it was blocked
    acknowledge()          the main thread is handling the stop, or needs no stop any more

A main thread that is in C code for long, or that swallows the exception, does not acknowledge the signal. Then
`on_ignored` is called after 1 s, in another thread. Without `install()` all of this does nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

ACKNOWLEDGE_TIMEOUT_S = 1.0


class Stopped(BaseException):
    """This process has to stop. Not an Exception, as a step's function might catch that and keep running."""


class _StopState:
    """Whether this process received the signal, and how it is handled."""

    def __init__(self) -> None:
        self.installed = False
        self.blocked = False
        self.pending = False
        self.received = threading.Event()
        """Set by a thread, so also if another library has replaced our handler."""
        self.acknowledged = threading.Event()
        self.on_ignored: Callable[[], None] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.pending = True
        self.raise_if_pending()

    def raise_if_pending(self) -> None:
        if self.pending and not self.blocked and not self.acknowledged.is_set():
            self.blocked = True  # raise once
            raise Stopped

    def watch(self, pipe: int) -> None:
        while signal.SIGTERM not in os.read(pipe, 64):
            continue
        self.received.set()
        if not self.acknowledged.wait(ACKNOWLEDGE_TIMEOUT_S) and self.on_ignored is not None:
            self.on_ignored()


_state = _StopState()
"""A process has one handler of a signal, so one state."""

_forking = threading.local()
"""The signals that this thread had blocked before it forked."""


def install() -> None:
    """Handle SIGTERM from now on. Call it in the main thread."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _state.installed = True
    reinstall_handler()
    threading.Thread(target=_state.watch, args=(reader,), name="stop-signal", daemon=True).start()
    os.register_at_fork(before=_block_signal, after_in_parent=_unblock_signal, after_in_child=_reset_in_child)


def reinstall_handler() -> None:
    """Set our handler again: a library may have replaced it (Ray does, with one that exits)."""
    if _state.installed and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _state.handle)


def block() -> None:
    _state.blocked = True


def unblock(on_ignored: Callable[[], None]) -> None:
    _state.blocked, _state.on_ignored = False, on_ignored
    _state.raise_if_pending()


def acknowledge() -> None:
    _state.acknowledged.set()
    _state.blocked = True


def received(timeout_s: float = 0.0) -> bool:
    """Whether this process received SIGTERM, or does within `timeout_s`."""
    return _state.installed and _state.received.wait(timeout_s)


def _block_signal() -> None:
    """Delay the signal while this thread forks: a child whose handling is not reset yet would write it to our pipe."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_signal() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _reset_in_child() -> None:
    """Restore the default in a forked child: it is no worker, and its parent decides how it ends."""
    if _state.installed:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _state.installed = False
    _unblock_signal()
