"""The places that are shown: folders and files below the listed prefixes, and nothing else.

In:  the text of an address.   Out: its place.   Written: nothing.

A text is relative to the first prefix, or a whole path. On a disk it is resolved, through links, before it is compared;
in a bucket it is compared name by name, so that "gs://b-x" is not below "gs://b".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from marin_assets.browse.errors import NotShownError, NotThereError
from marin_resources.configuration.settings import normalize_prefix
from marin_resources.storage.paths import is_local
from marin_resources.types.places import place_of, split_scheme

MOST_CHARACTERS, MOST_NAMES = 4096, 64
"""Limits of a path. The output of a file is looked for in all folders above it, and each costs a read of its store."""
SHOWN_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path that may be shown. It need not exist."""

    path: str
    """The path to read: on a disk without links."""
    text: str
    """The text of its address: relative to the first prefix, whole below another one."""
    prefix: str
    """The prefix that it is below, as it was listed."""

    @property
    def name(self) -> str:
        """The last name of the path; that of a prefix is the whole prefix."""
        return self.text.rstrip("/").rpartition("/")[2] or self.prefix

    @property
    def parents(self) -> list[str]:
        """The texts of the folders above it, the nearest last, without the prefix."""
        names = self.text.split("/")
        first = len(self.prefix.rstrip("/").split("/")) + 1 if self.text.startswith(self.prefix) else 1
        return ["/".join(names[:end]) for end in range(first, len(names))]


class Places:
    """The prefixes that a server shows."""

    def __init__(self, prefixes: Sequence[str]) -> None:
        self.prefixes = tuple(dict.fromkeys(map(normalize_prefix, prefixes)))

    @cached_property
    def _roots(self) -> dict[str, str]:
        """Prefix -> its one spelling."""
        return {prefix: place_of(prefix).rstrip("/") for prefix in self.prefixes}

    def resolve(self, text: str) -> Place:
        """The place of an address. Raises NotShownError outside of the prefixes, NotThereError for no path at all."""
        shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        if len(text) > MOST_CHARACTERS or text.count("/") > MOST_NAMES or "\0" in text or not _is_text(text):
            raise NotThereError(f"{shown!r} is not a path, expected that of an output or of a file below a prefix.")
        if {"..", "."}.intersection(text.split("/")):
            raise NotShownError(f"{shown!r} has '.' or '..' as a name. Name the place itself, below a prefix.")
        scheme, _ = split_scheme(text)
        whole = text if scheme or text.startswith("/") else f"{self.prefixes[0].rstrip('/')}/{text}".rstrip("/")
        place = place_of(whole).rstrip("/")
        for prefix, root in self._roots.items():
            if place == root or place.startswith(f"{root}/"):
                return self._place(whole, place, prefix, root)
        raise self._outside(shown)

    def text_of(self, path: str) -> str | None:
        """The text of the address of a path; None for a path that is not shown."""
        try:
            return self.resolve(path).text
        except (NotShownError, NotThereError):
            return None

    def require_shown(self, real_path: str) -> None:
        """Raise NotShownError unless the place of an open local file is below a prefix."""
        roots = [root for prefix, root in self._roots.items() if is_local(prefix)]
        if not any(real_path.startswith(f"{root}/") for root in roots):
            raise NotShownError("A file was replaced by a link that leads out of the prefix while it was read.")

    def _place(self, whole: str, place: str, prefix: str, root: str) -> Place:
        """The address keeps the names of links; a path that is spelled otherwise has the names that it leads to."""
        listed, plain = prefix.rstrip("/"), whole.removeprefix("file://").rstrip("/")
        below = plain[len(listed) :] if plain == listed or plain.startswith(f"{listed}/") else place[len(root) :]
        text = below.strip("/") if prefix == self.prefixes[0] else f"{listed}{below}"
        return Place(path=place if is_local(prefix) else f"{listed}{place[len(root) :]}", text=text, prefix=prefix)

    def _outside(self, shown: str) -> NotShownError:
        return NotShownError(
            f"{shown!r} is outside of what is shown: {', '.join(self.prefixes)}. Start the browser with --also and the "
            "other prefix."
        )


def _is_text(text: str) -> bool:
    try:
        os.fsencode(text)
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
