"""What a job prints, each line once, from two places: its own stdout, which the Jobs API gives, and the attempt's log.

In:  pieces of the job's stdout, from its first byte after each break; the attempt's log, read as it grows.
Out: lines. First those of the set-up, which only the job's stdout has; then, after its marker line, those of the
     attempt, which both have byte for byte: whichever is ahead is passed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from marin_resources.ray_tpu.log.attempt_log import MARKER_END, LogReader, marker_start, visible

ENTRY_POINT = "Running entrypoint for job "


class JobLog:
    """The lines go to `on_line`, one call at a time, from whichever thread calls."""

    def __init__(
        self, attempt_log_path: str, attempt: int, on_line: Callable[[str], None], *, start_bytes: int = 0
    ) -> None:
        """With `start_bytes` what is before that byte of the attempt's log, and the set-up, was shown before."""
        self.path = attempt_log_path
        self._lock = threading.Lock()
        self._reader = LogReader(attempt_log_path)
        self._attempt = _Attempt(on_line, start_bytes)
        shown_before = start_bytes > 0
        self._set_up = _SetUp((lambda line: None) if shown_before else on_line, marker_start(attempt))
        self._late = _Late()
        self._job_bytes = 0
        """How far the job's stdout was read since its marker."""
        self._first: Callable[[], None] | None = None
        if shown_before:
            told = f"the log goes on at byte {start_bytes}; what was before is in {attempt_log_path}"
            self._first = lambda: on_line(told)

    @property
    def position_bytes(self) -> int:
        """The attempt's log is passed on up to here."""
        return self._attempt.passed_bytes

    def feed_job(self, text: str) -> None:
        """The next piece of the job's stdout."""
        with self._lock:
            self._say_where()
            data = self._late.feed(self._set_up.feed(text), self._set_up.told).encode(errors="replace")
            self._attempt.feed(self._job_bytes, data)
            self._job_bytes += len(data)

    def job_restarted(self) -> None:
        """The next piece is the first of the job's stdout again."""
        with self._lock:
            self._set_up.restart()
            self._late = _Late()
            self._job_bytes = 0

    def poll_attempt(self) -> None:
        """Read what is new in the attempt's log. May block, as it may be in a bucket."""
        self._read(wait=True)

    def finish(self) -> None:
        """Pass on what is left, also last lines without an end. May block."""
        self._read(wait=False)
        with self._lock:
            self._set_up.finish()
            self._attempt.feed(self._job_bytes, self._late.rest.encode(errors="replace"))
            self._attempt.finish()

    def _read(self, *, wait: bool) -> None:
        with self._lock:
            start = self._attempt.known_bytes
        data = self._reader.read(start, wait=wait)  # meanwhile the job's stdout may get ahead
        with self._lock:
            self._say_where()
            self._attempt.feed(start, data)

    def _say_where(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first()


class _Attempt:
    """The bytes that both places have, from the one that is ahead."""

    def __init__(self, on_line: Callable[[str], None], start_bytes: int) -> None:
        self._on_line, self.passed_bytes, self._rest = on_line, start_bytes, b""

    @property
    def known_bytes(self) -> int:
        return self.passed_bytes + len(self._rest)

    def feed(self, start: int, data: bytes) -> None:
        """Bytes from `start` on, which is not beyond what is known, or of what was shown before."""
        new = data[max(0, self.known_bytes - start) :]
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            self.passed_bytes += len(line) + 1
            self._on_line(visible(line))

    def finish(self) -> None:
        if self._rest:
            rest, self._rest = self._rest, b""
            self.passed_bytes += len(rest)
            self._on_line(visible(rest))


class _Late:
    """What follows the marker, without Ray's word on the entry point: Ray keeps it back in a buffer, and under load it
    comes among the lines of the attempt, seconds late."""

    def __init__(self) -> None:
        self.rest = ""
        """A line that is not whole yet."""
        self._told = False

    def feed(self, text: str, told: bool) -> str:
        """Whole lines, until Ray has had its word; it is `told` if that was before the marker."""
        text, self.rest = self.rest + text, ""
        if told or self._told:
            return text
        end = text.rfind("\n") + 1
        lines, rest = text[:end].split("\n"), text[end:]
        late = next((number for number, line in enumerate(lines) if line.startswith(ENTRY_POINT)), None)
        if late is None:
            self.rest = rest
            return text[:end]
        self._told = True
        del lines[late]
        return "\n".join(lines) + rest


class _SetUp:
    """The lines of a job's stdout before the marker.

    They are counted without the empty ones: where Ray reads a "\\r\\n" in two pieces, it makes two line ends of it, so
    empty lines may be others after a break. They are passed on with the line after them.
    """

    def __init__(self, on_line: Callable[[str], None], marker: str) -> None:
        self._on_line, self._marker, self._passed = on_line, marker, 0
        self.restart()

    def restart(self) -> None:
        self._rest, self._read, self._empty, self._over = "", 0, 0, False
        self.told = False
        """Ray has had its word on the entry point."""

    def feed(self, text: str) -> str:
        """Pass on what is new. Returns what is after the marker."""
        if self._over:
            return text
        text, begin = self._rest + text, 0
        while (end := text.find("\n", begin)) >= 0:
            line, begin = text[begin:end], end + 1
            before, marker, _ = line.partition(self._marker)
            if marker and line.endswith(MARKER_END):
                self._over, self._rest = True, ""
                if before:
                    self._line(before)
                return text[begin:]
            self._line(line)
        self._rest = text[begin:]
        return ""

    def finish(self) -> None:
        """The last line has no end. Neither may a marker have one, if the disk is full."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        if not line.strip():
            self._empty += 1
            return
        self.told = self.told or line.startswith(ENTRY_POINT)
        self._read += 1
        if self._read > self._passed:
            self._passed = self._read
            if not _is_rays(line):
                for _ in range(self._empty):
                    self._on_line("")
                self._on_line(line)
        self._empty = 0


def _is_rays(line: str) -> bool:
    """Ray's own words before the entry point's."""
    return line.startswith(ENTRY_POINT) or ("job_manager.py" in line and line.endswith("Runtime env is setting up."))
