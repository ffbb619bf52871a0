"""Remove secrets from a step's log, errors and record.

In:  the values of secrets, and text or JSON.   Out: the same with `***` in place of each secret.

A secret is found as it is, line by line (a PEM key, also inside JSON), and quoted for a URL, HTML, JSON or Python. A
whole value is also found in base64 at every position of a longer text (as in `Authorization: Basic`), in hex, with each
character escaped for a URL or HTML, and wrapped over several lines.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from marin_resources.ray_tpu.log.redact_stream import RedactedStream

MIN_CHARACTERS = 4
"""A shorter value is not treated as a secret: it would match inside ordinary words."""
MIN_LINE_CHARACTERS = 8
MIN_ENCODED_CHARACTERS = 6
"""A shorter piece of base64 would match inside ordinary words."""
LINE_END = re.compile(r"[\r\n]+|(?:\\r)?\\n")
"""Also escaped as in JSON: a service account's key is a JSON document that holds the lines of a PEM key."""

_PERCENT = re.compile("%[0-9A-F]{2}")


def secrets_of(names: Iterable[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the values of the variables that are set and not empty."""
    return [environ[name] for name in names if environ.get(name)]


def forms_of(values: Iterable[str]) -> list[str]:
    """Return every string to hide, so that no value can be read: each value, its lines, and both quoted."""
    secrets = [value for value in values if len(value) >= MIN_CHARACTERS]
    quoted = {form for value in secrets for part in _parts(value) for form in _quoted(part)}
    return sorted(quoted | {form for value in secrets for form in _encoded(value)})


def printed(form: str) -> bytes:
    """Return the bytes of a form as a process prints it, also for a variable that is not UTF-8."""
    try:
        return form.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return form.encode(errors="surrogatepass")


class Redactor:
    """Hides secrets in a whole text or JSON. For a stream of bytes, see `RedactedStream`."""

    def __init__(self, values: Iterable[str]) -> None:
        self._forms = [form.encode(errors="surrogatepass") for form in forms_of(values)]

    def text(self, text: str) -> str:
        stream = RedactedStream(self._forms)
        shown = stream.feed(text.encode(errors="surrogatepass")) + stream.flush()
        return shown.decode(errors="surrogatepass")

    def json(self, value: Any) -> Any:
        """Redact all strings, keys too. More stars are added to keys that would become equal."""
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


def _parts(value: str) -> Iterator[str]:
    yield value
    if len(value.strip()) >= MIN_CHARACTERS:  # a value from a file ends with a newline that is not printed
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
        yield _PERCENT.sub(lambda escape: escape[0].lower(), quote(raw, safe=safe))
    for quotes in (True, False):
        yield html.escape(part, quote=quotes)
        yield html.escape(part, quote=quotes).replace("&#x27;", "&#39;")
    yield json.dumps(part)[1:-1]
    yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield repr(part)[1:-1]
    yield repr(raw)[2:-1]


def _encoded(value: str) -> Iterator[str]:
    """The forms in which no character of a value is left as it is."""
    for part in {value, value.strip()}:
        raw = printed(part)
        if len(part) < MIN_CHARACTERS:
            continue
        for digits in (raw.hex(), raw.hex().upper()):
            yield digits
            yield re.sub("(..)", r"%\1", digits)
        yield "".join(f"&#{ord(character)};" for character in part)
        for case in ("x", "X"):
            yield "".join(f"&#x{ord(character):{case}};" for character in part)
        for before in range(3):
            yield from _in_base64(raw, before)


def _in_base64(raw: bytes, before: int) -> Iterator[str]:
    """The characters of base64 that depend on these bytes alone, so many bytes after a multiple of three; with the last
    ones too, for a text that ends with these bytes."""
    first, whole = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(bytes(before) + raw).decode()
        for form in (encoded[first:whole], encoded[first:].rstrip("="), encoded[first:]):
            if len(form) >= MIN_ENCODED_CHARACTERS:
                yield form
