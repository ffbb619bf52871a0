"""Secrets taken out of what is shown: a step's log, its errors, its record.

In:  the values of secrets, and text, JSON or bytes.   Out: the same with `***` where a secret was.

A secret is found as it is, by its lines (of a PEM key, also inside JSON), and quoted for a URL, JSON or Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from marin_resources.ray_tpu.log.redact_stream import RedactedStream

MIN_CHARACTERS = 4
"""A shorter value is no secret, and would be found in every other word."""
MIN_LINE_CHARACTERS = 8
LINE_END = re.compile(r"[\r\n]+|(?:\\r)?\\n")
"""Also as JSON writes it: a service account's key is a JSON document that holds the lines of a PEM key."""


def secrets_of(names: Iterable[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """The values of the variables that are set."""
    return [environ[name] for name in names if environ.get(name)]


def forms_of(values: Iterable[str]) -> list[str]:
    """All that has to be hidden so that none of the values is seen."""
    parts = {part for value in values if len(value) >= MIN_CHARACTERS for part in _parts(value)}
    return sorted({form for part in parts for form in _quoted(part)})


def printed(form: str) -> bytes:
    """A form as a process prints it, also if it is a variable that is not UTF-8."""
    try:
        return form.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return form.encode(errors="surrogatepass")


class Redactor:
    """Hides secrets: in a whole text or JSON, or, with `feed` and `flush`, in one stream that is cut anywhere."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = forms_of(values)
        self._forms_in_text = [form.encode(errors="surrogatepass") for form in forms]
        self._stream = RedactedStream(map(printed, forms))

    def text(self, text: str) -> str:
        stream = RedactedStream(self._forms_in_text)
        shown = stream.feed(text.encode(errors="surrogatepass")) + stream.flush()
        return shown.decode(errors="surrogatepass")

    def json(self, value: Any) -> Any:
        """The same for all strings in it, keys too. Keys that are the same afterwards are told apart by more stars."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        shown: dict[Any, Any] = {}
        for key, item in value.items():
            key = self.json(key)
            while key in shown:
                key += "*"
            shown[key] = self.json(item)
        return shown

    def feed(self, data: bytes) -> bytes:
        """What of the stream can be shown by now: not what may be the beginning of a secret."""
        return self._stream.feed(data)

    def flush(self) -> bytes:
        """What was held back, at the end of the stream."""
        return self._stream.flush()


def _parts(value: str) -> Iterator[str]:
    yield value
    if len(value.strip()) >= MIN_CHARACTERS:  # a value from a file ends with a line end that nobody prints
        yield value.strip()
    for line in LINE_END.split(value):
        if len(line.strip()) >= MIN_LINE_CHARACTERS:
            yield line.strip()


def _quoted(part: str) -> Iterator[str]:
    raw = printed(part)
    yield part
    for safe in ("", "/"):
        yield quote(raw, safe=safe)
        yield quote_plus(raw, safe=safe)
    yield json.dumps(part)[1:-1]
    yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield repr(part)[1:-1]
    yield repr(raw)[2:-1]
