"""Scrub texts, JSON, and a whole page of HTML.

A text that is cut for display is scrubbed before it is cut: a part of a secret has no shape. The whole page is scrubbed
once more at the end, so that no section can be forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from html import escape, unescape
from typing import Any

from marin_resources.ray_tpu.log.redact import Redactor
from marin_resources.scrub.patterns import (
    HIDDEN,
    PERSON_FIELD,
    SECRET_FIELD,
    without_addresses,
    without_paths,
    without_secrets,
)
from marin_resources.scrub.private_values import PrivateValues
from marin_resources.storage.watched_reads import count_read

PREFIX = "<prefix>"
TAG = re.compile(r"(<style>.*?</style>|<[^>]*>)", re.DOTALL)
ATTRIBUTE = re.compile(r'(\b(?:href|id|alt|title|aria-label|data-step|data-metric)=")([^"]*)(")')
SEPARATOR = "\0"


class Scrubber:
    """Removes private values, secrets, addresses and absolute paths."""

    def __init__(self, private: PrivateValues) -> None:
        self._redactor = Redactor(private.secrets)
        places = sorted(private.prefixes, key=lambda place: (-len(place), place))
        self._prefixes = (
            re.compile("|".join(f"(?:file:/*(?=/))?{re.escape(place)}(?![\\w-])" for place in places))
            if places
            else None
        )
        names = sorted(private.names, key=lambda name: (-len(name), name))
        self._replacements = private.names
        self._names = (
            re.compile(rf"(?i)(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, names))})(?![A-Za-z0-9])") if names else None
        )

    def text(self, text: str) -> str:
        """The text without what is private. A request of a server whose time is over ends here."""
        count_read(b"")
        text = self._redactor.text(text)
        if self._prefixes is not None:
            text = self._prefixes.sub(PREFIX, text)
        text = without_paths(without_addresses(without_secrets(text)))
        if self._names is not None:
            text = self._names.sub(lambda match: self._replacements.get(match[0].lower(), "<user>"), text)
        return text

    def json(self, value: Any) -> Any:
        """JSON with all its texts scrubbed; also a text without a shape, if the name of its field calls it a secret, a
        person or a machine."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.json(element) for element in value]
        if not isinstance(value, Mapping):
            return value
        return {self.text(str(key)): self._field(str(key), element) for key, element in value.items()}

    def _field(self, name: str, value: Any) -> Any:
        private = SECRET_FIELD.match(name) or PERSON_FIELD.match(name)
        return HIDDEN if private and isinstance(value, str) and value else self.json(value)

    def page(self, html: str, kept: Collection[str] = ()) -> str:
        """The page with its texts, links and names scrubbed; its markup and pictures as they are, and the links that
        are among `kept`."""
        pieces = TAG.split(html)
        texts = [unescape(text) for text in pieces[::2]]
        attributes = [unescape(match[2]) for tag in pieces[1::2] for match in ATTRIBUTE.finditer(tag)]
        scrubbed = iter(self._many([*texts, *attributes]))
        pieces[::2] = [escape(next(scrubbed), quote=False) for _ in texts]

        def attribute(match: re.Match[str]) -> str:
            value = next(scrubbed)
            is_kept = kept and match[1] == 'href="' and unescape(match[2]) in kept
            return match[0] if is_kept else f"{match[1]}{escape(value)}{match[3]}"

        pieces[1::2] = [ATTRIBUTE.sub(attribute, tag) for tag in pieces[1::2]]
        return "".join(pieces)

    def _many(self, texts: list[str]) -> list[str]:
        """The scrubbed texts: all in one pass, as a page has tens of thousands."""
        distinct = list(dict.fromkeys(texts))
        joined = self.text(SEPARATOR.join(text.replace(SEPARATOR, "") for text in distinct))
        scrubbed = joined.split(SEPARATOR)
        if len(scrubbed) != len(distinct):  # a secret with a NUL
            scrubbed = [self.text(text) for text in distinct]
        of_text = dict(zip(distinct, scrubbed, strict=True))
        return [of_text[text] for text in texts]
