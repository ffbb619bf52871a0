"""Remove secrets from a stream of bytes. Imports nothing, as the log's pump starts with it.

In:  the printed forms of secrets (`redact.forms_of`), and chunks of bytes.   Out: the bytes with `***` for each secret.

The result does not depend on where the chunks are cut; only a long secret that is wrapped over several lines is found
within one chunk alone. Overlapping secrets become one `***`, so no part of either is left. Each form is searched with
`bytes.find`, which is linear in the worst case too, unlike a regular expression.
"""

from __future__ import annotations

from collections.abc import Iterable

HIDDEN = b"***"
MIN_WRAPPED_BYTES = 16
"""A shorter secret is not searched across lines: the end of one line and the beginning of the next may match by
chance."""


class RedactedStream:
    """Redacts chunks given to `feed`. `flush` returns the rest, which may be the beginning of a secret."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        self._forms = sorted({form for form in forms if form}, key=lambda form: (-len(form), form))
        self._long_forms = [form for form in self._forms if len(form) >= MIN_WRAPPED_BYTES and b"\n" not in form]
        self._rest = b""
        self._hidden_bytes = 0
        """Number of bytes of the rest that belong to a secret that is hidden already."""

    def feed(self, data: bytes) -> bytes:
        """Add a chunk and return the redacted bytes up to the possible beginning of a secret."""
        if not self._forms:
            return data
        data = self._rest + data
        return self._shown(data, self._possible_beginning(data))

    def flush(self) -> bytes:
        """Return the redacted rest at the end of the stream."""
        return self._shown(self._rest, len(self._rest))

    def _shown(self, data: bytes, end: int) -> bytes:
        """Return the bytes before `end` without secrets, and keep the others as the rest."""
        shown, at = [], self._hidden_bytes
        for start, stop in self._secrets(data, end):
            if start >= at:
                shown += [data[at:start], HIDDEN]
            at = max(at, stop)
        shown.append(data[at:end])
        self._rest, self._hidden_bytes = data[end:], max(0, at - end)
        return b"".join(shown)

    def _secrets(self, data: bytes, end: int) -> list[tuple[int, int]]:
        """Return start and stop of each secret that starts before `end`."""
        places = []
        for form in self._forms:
            start = data.find(form)
            while 0 <= start < end:
                places.append((start, start + len(form)))
                start = data.find(form, start + 1)
        return sorted(places + self._wrapped_secrets(data, end))

    def _wrapped_secrets(self, data: bytes, end: int) -> list[tuple[int, int]]:
        """Return start and stop of each long secret that is wrapped over several lines, as base64 often is."""
        if not self._long_forms or b"\n" not in data:
            return []
        lines, ends = [], []  # without line ends; where each ends, in the joined lines and in the data
        squeezed = at = 0
        for line in data.splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            squeezed, at = squeezed + len(text), at + len(line)
            lines.append(text)
            ends.append((squeezed, at - len(line) + len(text)))
        joined, places = b"".join(lines), []
        for form in self._long_forms:
            start = joined.find(form)
            while start >= 0:
                place = _place(ends, start), _place(ends, start + len(form) - 1) + 1
                if place[0] < end and place[1] - place[0] > len(form):
                    places.append(place)
                start = joined.find(form, start + 1)
        return places

    def _possible_beginning(self, data: bytes) -> int:
        """Return the position from which the bytes may be the beginning of a secret."""
        first = len(data)
        for form in self._forms:
            at = data.find(form[0], max(0, len(data) - len(form) + 1), first)
            while at >= 0:
                if form.startswith(data[at:]):
                    first = at
                    break
                at = data.find(form[0], at + 1, first)
        return first


def _place(ends: list[tuple[int, int]], at: int) -> int:
    """Return the position in the data of a byte of the joined lines."""
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if at < ends[middle][0]:
            high = middle
        else:
            low = middle + 1
    squeezed, stop = ends[low]
    return stop - (squeezed - at)
