"""Secrets taken out of bytes that arrive cut anywhere. Imports nothing, as the log's pump starts with it.

In:  the forms that secrets are printed in (`redact.forms_of`), and bytes.   Out: the bytes with `***` for each secret.

What comes out does not depend on where the bytes were cut. Secrets that overlap are one `***`, so that no end of either
is left. Each form is looked for with `bytes.find`, which is linear in the worst case too, unlike a regular expression.
"""

from __future__ import annotations

from collections.abc import Iterable

HIDDEN = b"***"


class RedactedStream:
    """Give it bytes with `feed`; what it holds back, the possible beginning of a secret, comes with `flush`."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        self._forms = sorted({form for form in forms if form}, key=lambda form: (-len(form), form))
        self._rest = b""
        self._hidden_bytes = 0
        """So many bytes of the rest are part of a secret that is hidden already."""

    def feed(self, data: bytes) -> bytes:
        """What can be shown by now."""
        if not self._forms:
            return data
        data = self._rest + data
        return self._shown(data, self._possible_beginning(data))

    def flush(self) -> bytes:
        """What was held back: the bytes are at their end."""
        return self._shown(self._rest, len(self._rest))

    def _shown(self, data: bytes, end: int) -> bytes:
        """The bytes before `end`, without secrets; the others are the rest."""
        shown, at = [], self._hidden_bytes
        for start, stop in self._secrets(data, end):
            if start >= at:
                shown += [data[at:start], HIDDEN]
            at = max(at, stop)
        shown.append(data[at:end])
        self._rest, self._hidden_bytes = data[end:], max(0, at - end)
        return b"".join(shown)

    def _secrets(self, data: bytes, end: int) -> list[tuple[int, int]]:
        """Where the secrets that begin before `end` begin and stop."""
        found = []
        for form in self._forms:
            start = data.find(form)
            while 0 <= start < end:
                found.append((start, start + len(form)))
                start = data.find(form, start + 1)
        return sorted(found)

    def _possible_beginning(self, data: bytes) -> int:
        """From where on the bytes may be the beginning of a secret."""
        first = len(data)
        for form in self._forms:
            at = data.find(form[0], max(0, len(data) - len(form) + 1), first)
            while at >= 0:
                if form.startswith(data[at:]):
                    first = at
                    break
                at = data.find(form[0], at + 1, first)
        return first
