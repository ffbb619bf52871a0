"""The lists of a URL filter, in memory: addresses as hashes, words as texts.

The lists have the names of datatrove's package, or those of DCLM's repository, and are no part of this one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from marin_assets.stages.filter.url.errors import UrlFilterError
from marin_assets.stages.filter.url.hashed_set import HashedSet
from marin_assets.stages.filter.url.list_files import DAMAGED, entries_in, members
from marin_resources.storage.files import StoredFile

NAMES: Mapping[str, Mapping[str, str]] = {  # matching -> list -> name of its file
    "datatrove": {
        "domains": "domains",
        "urls": "urls",
        "hard_words": "banned_words.txt",
        "soft_words": "soft_banned_words.txt",
        "subwords": "banned_subwords.txt",
    },
    "dclm": {
        "domains": "refinedweb_banned_domains_curated.txt",
        "hard_words": "refinedweb_banned_words_hard_reverse_engineered.txt",
        "soft_words": "refinedweb_banned_words_soft_reverse_engineered.txt",
        "subwords": "refinedweb_banned_words_strict_reverse_engineered.txt",
    },
}
ADDRESSES = ("domains", "urls")
"""Lists of millions of entries, of which only hashes are kept."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class UrlLists:
    """The lists that a filter needs; the others are empty."""

    addresses: Mapping[str, HashedSet]
    """ "domains" and "urls"."""
    words: Mapping[str, tuple[str, ...]]
    """ "hard_words", "soft_words" and "subwords", in the order of the file."""


def read_lists(files: Iterable[StoredFile], path: str, matching: str, needed: Collection[str]) -> UrlLists:
    """Read the lists `needed`, keys of NAMES[matching], out of files of the folder or archive `path`.

    DCLM's entries are lowered, as its own program does. Raises UrlFilterError for a list that is missing, empty, in two
    places, not UTF-8 or in a damaged archive.
    """
    kinds = {name: kind for kind, name in NAMES[matching].items() if kind in needed}
    addresses: dict[str, HashedSet] = {}
    words: dict[str, tuple[str, ...]] = {}
    places: dict[str, str] = {}
    for file in files:
        try:
            for name, place, stream in members(file, kinds):
                kind = kinds[name]
                if kind in places:
                    raise UrlFilterError(
                        f"{path!r} has two lists {name!r}, {places[kind]!r} and {place!r}, expected one. Remove one."
                    )
                places[kind] = place
                parts = entries_in(stream, place)
                if kind in ADDRESSES:
                    addresses[kind] = HashedSet(_lowered(parts, place) if matching == "dclm" else parts)
                    count = len(addresses[kind])
                else:
                    words[kind] = tuple(entry for part in parts for entry in _decoded(part, place))
                    count = len(words[kind])
                if not count:
                    raise UrlFilterError(f"{place!r} has no entry, expected one a line. Download the list again.")
                log.info("the list %r has %d entries, from %r", kind, count, place)
        except DAMAGED as error:
            raise UrlFilterError(f"{file.path!r} cannot be read as an archive ({error}). Download it again.") from error
    missing = sorted(set(needed) - set(places))
    if missing:
        raise UrlFilterError(_without(path, matching, missing))
    return UrlLists(addresses=addresses, words=words)


def _lowered(parts: Iterable[list[bytes]], place: str) -> Iterator[Iterable[bytes]]:
    for part in parts:
        yield [text.lower().encode() for text in _decoded(part, place)]


def _decoded(entries: list[bytes], place: str) -> list[str]:
    try:
        return [entry.decode("utf-8") for entry in entries]
    except UnicodeDecodeError as error:
        raise UrlFilterError(
            f"{place!r} has the entry {error.object[:80]!r}, which is not UTF-8, expected a list in UTF-8. Download "
            "the list again."
        ) from error


def _without(path: str, matching: str, missing: list[str]) -> str:
    names = ", ".join(repr(NAMES[matching][kind]) for kind in missing)
    return (
        f"url_lists_path is {path!r}, which has no list {names}, neither as a file nor in an archive (.whl, .zip, "
        f".tar.gz). Add what is missing, or disable the rules by {', '.join(missing)} in the thresholds."
    )
