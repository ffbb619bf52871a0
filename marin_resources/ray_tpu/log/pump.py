"""The pump of an attempt's log: a process between a step's output and the log file. Standard library only.

In:  stdin, the read end of the pipe that is a worker's stdout and stderr; a second pipe with a first line for stdout
     and the secrets to hide, complete when its writer closes it.
Out: whole lines without secrets, appended to the log. To stdout, which is the job's: all of the log (other processes
     append to it too), in the same order and byte for byte.

A separate process outlives the worker: the last output of a killed worker is still in the pipe, and is written. The
pump ends when the pipe is closed. A failing log does not keep lines from stdout, a failing stdout does not keep lines
from the log, and neither blocks the worker.
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
LOG_POLL_S = 1.0
"""Interval of reading other processes' lines from the log, and of retrying a stdout that is full."""
FINISH_TIMEOUT_S = 2.0
"""Time limit at the end for a stdout that is full."""
BACKLOG_BYTES = 1 << 20
"""At most this much is kept for stdout if the log does not accept it."""
PRINTED, STDOUT, NO_FD = 0, 1, -1


class Log:
    """The log file. Bytes that it does not accept are counted, and the count is written when it accepts more."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lost_bytes, self._reason = fd, 0, ""

    def append(self, lines: bytes) -> bool:
        """Append lines and return whether all of them are in the log."""
        if self._fd == NO_FD:
            return False
        gap = (
            f"\n--- marin: {self._lost_bytes} bytes are missing here: {self._reason} ---\n" if self._lost_bytes else ""
        )
        remaining = gap.encode() + lines
        try:
            while remaining:
                remaining = remaining[os.write(self._fd, remaining) :]
        except OSError as error:  # for example a full disk: the worker keeps running
            self._lost_bytes += min(len(remaining), len(lines))
            self._reason = error.strerror or str(error)
            return False
        self._lost_bytes = 0
        return True


class Tee:
    """The job's stdout: gets all of the log and the backlog, as fast as it accepts them."""

    def __init__(self, log_fd: int, first_line: bytes) -> None:
        self._log_fd, self._offset, self._unwritten, self._backlog = log_fd, 0, first_line, b""
        regular = stat.S_ISREG(os.fstat(STDOUT).st_mode)
        self._write_bytes = READ_BYTES if regular else select.PIPE_BUF  # never blocks after poll() reports it writable
        self.broken = False

    def add(self, lines: bytes) -> None:
        """Add lines that are not in the log to the backlog."""
        if len(self._backlog) + len(lines) <= BACKLOG_BYTES:
            self._backlog += lines

    def catch_up(self, *, at_end: bool = False) -> bool:
        """Write what stdout lacks and return whether it has all. `at_end` includes an unfinished last line."""
        while not self.broken:
            self._unwritten = self._unwritten or self._from_log(at_end) or self._from_backlog()
            if not self._unwritten:
                return True
            if not _writable(STDOUT):
                return False
            try:
                self._unwritten = self._unwritten[os.write(STDOUT, self._unwritten[: self._write_bytes]) :]
            except BlockingIOError:
                return False
            except OSError as error:
                self.broken = error.errno not in (errno.ENOSPC, errno.EDQUOT)  # no other error is temporary
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
    """Copy printed output until the pipe is closed."""
    lines = Lines()

    def write(whole_lines: bytes) -> bool:
        """Write whole lines and return whether stdout has all of them too."""
        if whole_lines and not log.append(whole_lines) and stdout is not None:
            stdout.add(whole_lines)
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
    end_s = time.monotonic() + FINISH_TIMEOUT_S
    while stdout is not None and not stdout.catch_up(at_end=True) and time.monotonic() < end_s:
        time.sleep(0.02)


def _wait(due_in_s: float | None, tee: bool, caught_up: bool) -> None:
    """Wait until output arrives, an unfinished line is due, or stdout accepts more of what it lacks."""
    poll = select.poll()
    poll.register(PRINTED, select.POLLIN)
    waits = [max(0.0, due_in_s)] if due_in_s is not None else []
    if tee:
        waits.append(LOG_POLL_S)
        if not caught_up and not _writable(STDOUT):  # if it is writable, its disk is full
            poll.register(STDOUT, select.POLLOUT)
    poll.poll(1 + min(waits) * 1000 if waits else None)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _writable(fd: int) -> bool:
    """Whether a write succeeds, or fails at once because `fd` is broken."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def main(*numbers: str) -> None:
    log_fd, begin_fd, tee = map(int, numbers)
    with open(begin_fd, "rb") as file:
        first_line, *forms = [bytes.fromhex(line.decode()) for line in file] or [b""]
    pump(Log(log_fd), RedactedStream(forms), Tee(log_fd, first_line) if tee else None)
