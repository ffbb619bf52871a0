"""What is kept, by paths below the prefix, each with the first reason of each kind that was given.

keep(path)      the output there, those below it, and one that has it inside
mention(text)   the same for a text that may be a path; one that no output can have is passed over
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from marin_resources.storage.output.collected import relative_path

HASHED = re.compile(r"-[0-9a-f]{6}(/|$)")
"""The path of every output that is not at a path of its own has it."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why an output is kept."""

    kind: str
    """By which outputs are counted: "by pins"."""
    sentence: str
    since: datetime | None = None
    """When it came to be; None if it counts whenever that was."""


Reasons = dict[str, Reason]
"""Kind -> reason."""


@dataclass(kw_only=True)
class Kept:
    prefixes: tuple[str, ...]
    """Of the store and its regions: an output has the same path below each."""
    _at: dict[str, Reasons] = field(default_factory=dict)
    _above: dict[str, Reasons] = field(default_factory=dict)
    """Folders that have something inside that is kept."""

    def keep(self, path: str, kind: str, sentence: str, since: datetime | None = None) -> None:
        relative, reason = self.relative(path), Reason(kind=kind, sentence=sentence, since=since)
        self._at.setdefault(relative, {}).setdefault(kind, reason)
        for folder in _folders_of(relative):
            self._above.setdefault(folder, {}).setdefault(kind, reason)

    def mention(self, texts: Iterable[str], kind: str, sentence: str, since: datetime | None = None) -> None:
        for text in texts:
            if HASHED.search(text):
                self.keep(text, kind, sentence, since)

    def why(self, relative: str, since: datetime | None = None) -> Reason | None:
        """Why the output at this path below the prefix is kept; None if it is not. `since`: reasons that came to be
        before do not count."""
        places = [self._at.get(relative), self._above.get(relative), *map(self._at.get, _folders_of(relative))]
        found = (reason for reasons in places if reasons for reason in reasons.values())
        return next((each for each in found if since is None or each.since is None or each.since > since), None)

    def relative(self, path: str) -> str:
        """The path below a prefix; a path that is in none stays as it is."""
        path = path.removeprefix("mirror://").rstrip("/")
        return relative_path(path, self.prefixes) or path

    def paths(self) -> Iterator[str]:
        """What was kept itself."""
        yield from list(self._at)


def count_kinds(reasons: Iterable[Reason]) -> Counter[str]:
    """How many outputs are kept for each kind of reason."""
    return Counter(reason.kind for reason in reasons)


def _folders_of(relative: str) -> Iterator[str]:
    """The folders that the path is in, the nearest first."""
    while "/" in relative:
        relative = relative.rpartition("/")[0]
        if not relative.endswith(("/", ":")) and relative:
            yield relative
