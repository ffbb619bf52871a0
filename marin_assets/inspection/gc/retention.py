"""The kept outputs, by paths below the prefix, each with the first reason of each kind that was given.

keep(path)      the output there, those below it, and one that has it inside
mention(text)   the same for a text that may be a path; one that no output can have is passed over

Paths are compared as places: what is needed under one spelling of the prefix, or through a link, is kept under all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from marin_resources.storage.paths import is_local
from marin_resources.types.output import below
from marin_resources.types.places import place_of, relative_to, split_scheme

HASHED = re.compile(r"-[0-9a-f]{6}(/|$)")
"""The path of every output that is not at a path of its own has it."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason to keep an output."""

    kind: str
    """Label by which outputs are counted: "by pins"."""
    sentence: str
    since: datetime | None = None
    """Time at which it came to be; None if it counts whenever that was."""


Reasons = dict[str, Reason]
"""Kind -> reason."""


@dataclass(kw_only=True)
class Retention:
    prefixes: tuple[str, ...]
    """Prefixes of the store and its regions: an output has the same path below each."""
    _at: dict[str, Reasons] = field(default_factory=dict)
    _above: dict[str, Reasons] = field(default_factory=dict)
    """Folders that have something inside that is kept."""

    def keep(self, path: str, kind: str, sentence: str, since: datetime | None = None) -> None:
        reason = Reason(kind=kind, sentence=sentence, since=since)
        for name in self._names_of(self.relative(path)):
            self._at.setdefault(name, {}).setdefault(kind, reason)
            for folder in _folders_of(name):
                self._above.setdefault(folder, {}).setdefault(kind, reason)

    def mention(self, texts: Iterable[str], kind: str, sentence: str, since: datetime | None = None) -> None:
        for text in texts:
            if HASHED.search(text):
                for path in _possible_paths(text):
                    self.keep(path, kind, sentence, since)

    def why(self, relative: str, since: datetime | None = None) -> Reason | None:
        """The reason that keeps the output at this path below the prefix; None if it is not kept. `since`: reasons that
        came to be before do not count."""
        places: list[Reasons | None] = []
        for name in self._names_of(relative):
            places += [self._at.get(name), self._above.get(name), *map(self._at.get, _folders_of(name))]
        candidates = (reason for reasons in places if reasons for reason in reasons.values())
        return next(
            (reason for reason in candidates if since is None or reason.since is None or reason.since > since), None
        )

    def relative(self, path: str) -> str:
        """The path below a prefix; a path that is in none stays as it is."""
        scheme, rest = split_scheme(path)
        if scheme == "mirror":
            path = relative_to(f"/{rest.strip('/')}", self.prefixes) or rest.strip("/")
        return relative_to(path, self.prefixes) or path.rstrip("/")

    def _names_of(self, relative: str) -> Iterable[str]:
        """The path below the prefix, and where links lead from there: below a prefix again, or elsewhere."""
        places = (place_of(below(prefix, relative)) for prefix in self.prefixes if is_local(prefix))
        return dict.fromkeys([relative, *(relative_to(place, self.prefixes) or place for place in places)])

    def paths(self) -> Iterator[str]:
        """The paths that were kept themselves."""
        yield from list(self._at)


def count_kinds(reasons: Iterable[Reason]) -> Counter[str]:
    """Number of kept outputs for each kind of reason."""
    return Counter(reason.kind for reason in reasons)


def _possible_paths(text: str) -> Iterator[str]:
    """A relative path may be meant from any working folder: each of its ends that an output can have."""
    if "://" in text or text.startswith(("/", "~")):
        yield text
        return
    parts = [part for part in text.split("/") if part not in ("", ".", "..")]
    ends = ("/".join(parts[first:]) for first in range(len(parts)))
    yield from (end for end in ends if HASHED.search(end))


def _folders_of(relative: str) -> Iterator[str]:
    """The folders that the path is in, the nearest first."""
    while "/" in relative:
        relative = relative.rpartition("/")[0]
        if not relative.endswith(("/", ":")) and relative:
            yield relative
