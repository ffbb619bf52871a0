"""The lines that a job prints, each once and in order: first those of its set-up, then those of its attempt.

In:  the job's stdout from the Jobs API, up to the marker line, which names the attempt's log; then that log alone.
Out: lines. The set-up ends with the marker, or with the job if that ends before its attempt. After the marker both
     places hold the same bytes; the job's stdout is read again only for the last bytes of a worker that was killed
     before its log was uploaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from marin_resources.ray_tpu.log.attempt_log import MARKER_END, LogReader, marker_start, visible


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The part of a job's lines that earlier runs have shown."""

    bytes: int = 0
    """The set-up and the attempt's log before that byte; 0 for neither."""
    lines_after: int = 0
    """Lines after that."""


class Positions(Protocol):
    """The part of each job's log that runs have shown. May block."""

    def of(self, submission_id: str, step: str) -> Shown: ...
    def show(self, submission_id: str, step: str, before: Shown, pass_on: Callable[[], None]) -> None: ...
    def note(self, submission_id: str, step: str, position_bytes: int) -> None: ...
    def forget(self, submission_id: str) -> None: ...


ENTRY_POINT = "Running entrypoint for job "


class JobLog:
    """Passes the lines on to `on_line`. Not thread-safe: one call at a time."""

    def __init__(
        self,
        attempt_log_path: str,
        attempt: int,
        on_line: Callable[[str], None],
        *,
        shown: Shown = Shown(),
        has_set_up: bool = True,
    ) -> None:
        """Lines that earlier runs have shown are left out. A step in a batch job has no set-up of its own."""
        self.path, self.position_bytes = attempt_log_path, shown.bytes
        self._on_line = on_line
        self._reader = LogReader(attempt_log_path)
        self._set_up = SetUpLines(self._show, marker_start(attempt))
        self._set_up.over = shown.bytes > 0 or not has_set_up
        self._left_out = shown.lines_after
        """Lines to leave out from here on."""
        self._rest = b""
        """The last line of the attempt's log, which is incomplete. Behind `position_bytes`."""

    @property
    def all_is_shown(self) -> bool:
        """Whether each line before `position_bytes` was shown, and none after it."""
        return self._left_out == 0

    @property
    def set_up_is_over(self) -> bool:
        """Whether the marker was read: the Jobs API is not needed any more."""
        return self._set_up.over

    def feed_job(self, text: str) -> None:
        """Take the next piece of the job's stdout. Ignored after the marker."""
        self._set_up.feed(text)

    def job_restarted(self) -> None:
        """The next piece is the first of the job's stdout again. Lines that were passed on are skipped."""
        self._set_up.restart()

    def poll_attempt(self) -> None:
        """Pass on new lines of the attempt's log once the set-up is over. May block: the log may be in a bucket."""
        if self._set_up.over:
            self._feed_attempt(self._reader.read(self._read_bytes, wait=True))

    def finish(self, stdout: str = "") -> None:
        """Pass on the rest, also a last line without an end. May block.

        `stdout` is the whole stdout of the job, for what is missing in the attempt's log.
        """
        self._set_up.finish()
        self._feed_attempt(self._reader.read(self._read_bytes, wait=False))
        self._feed_attempt(attempt_bytes(stdout, self._set_up.marker)[self._read_bytes :])
        if self._rest:
            self._pass_on(self._rest)
            self._rest = b""

    @property
    def _read_bytes(self) -> int:
        return self.position_bytes + len(self._rest)

    def _feed_attempt(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._pass_on(line, ends=1)

    def _pass_on(self, line: bytes, *, ends: int = 0) -> None:
        self.position_bytes += len(line) + ends
        self._show(visible(line))

    def _show(self, line: str) -> None:
        if self._left_out:
            self._left_out -= 1
        else:
            self._on_line(line)


class SetUpLines:
    """The lines of a job's stdout before the marker.

    They are counted without empty lines: where Ray reads a "\\r\\n" in two pieces, it makes two line ends of it, so
    the number of empty lines may differ after a break. An empty line is passed on with the line after it.
    """

    def __init__(self, on_line: Callable[[str], None], marker: str) -> None:
        self._on_line, self.marker, self._passed = on_line, marker, 0
        self.over = False
        """Whether the marker was read."""
        self.restart()

    def restart(self) -> None:
        self._rest, self._read, self._empty = "", 0, 0

    def feed(self, text: str) -> None:
        """Pass on the new lines before the marker."""
        if self.over:
            return
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            before, marker, _ = line.partition(self.marker)
            if marker and line.endswith(MARKER_END):
                self.over, self._rest = True, ""
                if before:
                    self._pass_on(before)
                return
            self._pass_on(line)

    def finish(self) -> None:
        """Pass on a last line without an end, which a marker may be too if the disk is full."""
        if self._rest:
            self._pass_on(self._rest)
            self._rest = ""

    def _pass_on(self, line: str) -> None:
        if not line.strip():
            self._empty += 1
            return
        self._read += 1
        if self._read > self._passed:
            self._passed = self._read
            if not _is_rays(line):
                for _ in range(self._empty):
                    self._on_line("")
                self._on_line(line)
        self._empty = 0


def attempt_bytes(stdout: str, marker: str) -> bytes:
    """The attempt's part of a job's stdout: what follows the marker line. Empty without one.

    Ray buffers its line about the entry point, so under load that line may follow the marker: it is removed.
    """
    match = re.search(rf"{re.escape(marker)}.*{re.escape(MARKER_END)}\n", stdout)
    if match is None:
        return b""
    after = stdout[match.end() :]
    if ENTRY_POINT not in stdout[: match.start()]:
        after = re.sub(rf"^{ENTRY_POINT}.*\n", "", after, count=1, flags=re.MULTILINE)
    return after.encode(errors="replace")


def _is_rays(line: str) -> bool:
    """Whether Ray printed the line before the entry point ran."""
    return line.startswith(ENTRY_POINT) or ("job_manager.py" in line and line.endswith("Runtime env is setting up."))
