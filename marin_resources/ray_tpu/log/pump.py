"""The pump of an attempt's log: a process between what a step prints and where it is kept. Standard library only.

In:  its stdin, the pipe that a worker's stdout and stderr go into; from a second pipe, when that is closed, a first
     line for its stdout and the secrets to hide.
Out: whole lines without secrets, appended to the log, and all that is in the log (other processes append too), in the
     same order and byte for byte, to its stdout: the job's.

It is a process of its own so that it lives longer than the worker: what a worker that was killed has printed is in the
pipe, and is written. It ends when the pipe is closed. Trouble with the log does not keep lines from stdout, trouble
with stdout does not keep them from the log, and neither makes the worker wait.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time

from marin_resources.ray_tpu.log.lines import Lines
from marin_resources.ray_tpu.log.redact_stream import RedactedStream

READ_BYTES = 1 << 16
OTHERS_LOOK_S = 1.0
"""So often lines of other processes are looked for in the log, and a stdout that takes nothing is tried again."""
LAST_WAIT_S = 2.0
"""So long a stdout that takes nothing is waited for at the end."""
BACKLOG_BYTES = 1 << 20
"""So much is kept for stdout if it cannot be in the log."""
PRINTED, STDOUT, NO_FD = 0, 1, -1


class Log:
    """The log that lines are appended to; what it does not take is counted and told in it when it takes more."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lost_bytes, self._why = fd, 0, ""

    def append(self, lines: bytes) -> bool:
        """Whether all of it is in the log."""
        if self._fd == NO_FD:
            return False
        told = f"\n--- marin: {self._lost_bytes} bytes are missing here: {self._why} ---\n" if self._lost_bytes else ""
        left = told.encode() + lines
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:  # a full disk, say: the worker goes on
            self._lost_bytes += min(len(left), len(lines))
            self._why = error.strerror or str(error)
            return False
        self._lost_bytes = 0
        return True


class Tee:
    """The job's stdout: gets all of the log, and what could not be in it, as fast as it takes it."""

    def __init__(self, log_fd: int, first_line: bytes) -> None:
        self._log_fd, self._offset, self._unwritten, self._backlog = log_fd, 0, first_line, b""
        regular = stat.S_ISREG(os.fstat(STDOUT).st_mode)
        self._write_bytes = READ_BYTES if regular else select.PIPE_BUF  # so much never waits once poll() says so
        self.broken = False

    def add(self, lines: bytes) -> None:
        """Lines that are not in the log."""
        if len(self._backlog) + len(lines) <= BACKLOG_BYTES:
            self._backlog += lines

    def catch_up(self, *, at_end: bool = False) -> bool:
        """Whether it has all. At the end also what is after the last whole line."""
        while not self.broken:
            self._unwritten = self._unwritten or self._from_log(at_end) or self._from_backlog()
            if not self._unwritten:
                return True
            if not _takes_more(STDOUT):
                return False
            try:
                self._unwritten = self._unwritten[os.write(STDOUT, self._unwritten[: self._write_bytes]) :]
            except BlockingIOError:
                return False
            except OSError as error:
                self.broken = error.errno not in (errno.ENOSPC, errno.EDQUOT)  # nothing else gets better
                return self.broken
        return True

    def _from_log(self, at_end: bool) -> bytes:
        if self._log_fd == NO_FD:
            return b""
        data = os.pread(self._log_fd, READ_BYTES, self._offset)
        if not at_end and len(data) < READ_BYTES:
            data = data[: data.rfind(b"\n") + 1]
        self._offset += len(data)
        return data

    def _from_backlog(self) -> bytes:
        backlog, self._backlog = self._backlog, b""
        return backlog


def pump(log: Log, secrets: RedactedStream, stdout: Tee | None) -> None:
    """Until the pipe is closed."""
    lines = Lines()

    def write(some: bytes) -> bool:
        """Whether stdout has all of it, too."""
        if some and not log.append(some) and stdout is not None:
            stdout.add(some)
        return stdout is None or stdout.catch_up()

    caught_up = True
    while True:
        _wait(lines.due_in_s(time.monotonic()), stdout is not None, caught_up)
        data = os.read(PRINTED, READ_BYTES) if _readable(PRINTED) else None
        if data == b"":
            break
        now_s = time.monotonic()
        caught_up = write(lines.feed(secrets.feed(data), now_s) if data else lines.due(now_s))
    write(lines.feed(secrets.flush(), time.monotonic()) + lines.flush())
    _finish(stdout)


def _finish(stdout: Tee | None) -> None:
    until_s = time.monotonic() + LAST_WAIT_S
    while stdout is not None and not stdout.catch_up(at_end=True) and time.monotonic() < until_s:
        time.sleep(0.02)


def _wait(due_in_s: float | None, tee: bool, caught_up: bool) -> None:
    """Until something is printed, or an unfinished line is due, or stdout takes more of what it lacks."""
    poll = select.poll()
    poll.register(PRINTED, select.POLLIN)
    waits = [max(0.0, due_in_s)] if due_in_s is not None else []
    if tee:
        waits.append(OTHERS_LOOK_S)
        if not caught_up and not _takes_more(STDOUT):  # if it takes more, its disk is full
            poll.register(STDOUT, select.POLLOUT)
    poll.poll(1 + min(waits) * 1000 if waits else None)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _takes_more(fd: int) -> bool:
    """Or is broken, which is seen by writing."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def main(log_fd: int, begin_fd: int, tee: int) -> None:
    with open(begin_fd, "rb") as file:
        first_line, *forms = [bytes.fromhex(line.decode()) for line in file] or [b""]
    pump(Log(log_fd), RedactedStream(forms), Tee(log_fd, first_line) if tee else None)
