"""Turn printed bytes into lines of a log: UTF-8, ended by "\\n", without the overwritten states of a line.

In:  bytes as they arrive, and the time.   Out: bytes that are whole lines.

A progress bar overwrites its line with "\\r": the last state counts, and while it runs one state is shown every 10 s.
An unfinished line (a prompt) is shown after 10 s too; later output starts a new line. Imports the standard library
alone, as the log's pump starts with it.
"""

from __future__ import annotations

import codecs

SHOW_AFTER_S = 10.0
MAX_LINE_BYTES = 1 << 20
"""A longer line is shown in parts."""


class Lines:
    """Takes printed bytes and returns whole lines."""

    def __init__(self, show_after_s: float = SHOW_AFTER_S) -> None:
        self._show_after_s = show_after_s
        self._line = b""
        self._since_s: float | None = None
        """When the first byte of the unfinished line arrived."""
        self._shown = False
        """Whether a part of the unfinished line was shown."""

    def feed(self, data: bytes, now_s: float) -> bytes:
        """Add bytes and return the lines that are now whole."""
        lines, end, line = (self._line + data).rpartition(b"\n")
        if end:
            lines, self._since_s = self._finished(lines), None
        self._line = last_state(line) + (b"\r" if line.endswith(b"\r") else b"")
        if self._line and self._since_s is None:
            self._since_s = now_s
        return lines if len(self._line) < MAX_LINE_BYTES else lines + self._show()

    def due(self, now_s: float) -> bytes:
        """Return the unfinished line if it is due."""
        wait_s = self.due_in_s(now_s)
        return self._show() if wait_s is not None and wait_s <= 0 else b""

    def due_in_s(self, now_s: float) -> float | None:
        """Return the seconds until the unfinished line is due, None without such a line."""
        return None if self._since_s is None else self._since_s + self._show_after_s - now_s

    def flush(self) -> bytes:
        """Return the unfinished line at the end of the stream."""
        return self._finished(self._line) if self._line else b""

    def _finished(self, lines: bytes) -> bytes:
        if b"\r" in lines:
            lines = b"\n".join(map(last_state, lines.split(b"\n")))
        lines += b"\n"
        first, _, others = lines.partition(b"\n")
        if self._shown and not first.strip():  # nothing arrived since the line was shown
            lines = others
        self._shown = False
        return lines.decode(errors="replace").encode()

    def _show(self) -> bytes:
        """Return the unfinished line, except a character that is cut in two."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(last_state(self._line))
        self._line, self._since_s = decoder.getstate()[0], None
        if not text.strip():
            return b""
        self._shown = True
        return f"{text}\n".encode()


def last_state(line: bytes) -> bytes:
    """Return the part of an overwritten line that a terminal would show."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
