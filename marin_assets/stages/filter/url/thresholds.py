"""The thresholds of the family `url`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marin_assets.stages.filter.url.errors import UrlFilterError
from marin_resources.types.near_names import expected_one_of

Hit = tuple[str, float]
"""A rule that rejects an address, and the measured number."""

MATCHING = ("datatrove", "dclm")
MISSING = ("error", "keep", "reject")
RULES = ("domain", "subdomain", "url", "hard_words", "subwords")
"""The rules that are on or off."""
ONLY_DATATROVE = ("subdomain", "url")


@dataclass(frozen=True, kw_only=True)
class UrlThresholds:
    """None or false disables a rule."""

    key: str
    """The key of the address in a document's metadata, such as "url"; "a.b" is the key "b" of an object "a"."""
    missing: str
    """The decision about a document without an address: "error", "keep" or "reject"."""
    matching: str
    """The comparison of addresses with lists, and the names of these: "datatrove" or "dclm"."""
    domain: bool | None
    """Reject a registered domain of the list; with "dclm", a host."""
    subdomain: bool | None
    """Reject a whole host of the list of domains."""
    url: bool | None
    """Reject an address of the list, which must equal it."""
    hard_words: bool | None
    """Reject a word of the list."""
    soft_words: int | None
    """Reject this many different words of the list, or more."""
    subwords: bool | None
    """Reject a word of the list also inside of other words."""


def check_thresholds(thresholds: UrlThresholds) -> None:
    """Raise UrlFilterError for a value that no filter can use."""
    for name, names in (("matching", MATCHING), ("missing", MISSING)):
        _require(
            getattr(thresholds, name) in names, thresholds, name, expected_one_of(getattr(thresholds, name), names)
        )
    key, soft = thresholds.key, thresholds.soft_words
    _require(isinstance(key, str) and key != "", thresholds, "key", 'expected a key of the metadata, such as "url".')
    for name in RULES:
        value = getattr(thresholds, name)
        _require(value is None or isinstance(value, bool), thresholds, name, "expected True, False or None.")
    whole = isinstance(soft, int) and not isinstance(soft, bool) and soft >= 1
    _require(soft is None or whole, thresholds, "soft_words", "expected a number of words of at least 1, or None.")
    for name in ONLY_DATATROVE if thresholds.matching == "dclm" else ():
        why = 'a rule that matching="dclm" does not have. Set it to False.'
        _require(not getattr(thresholds, name), thresholds, name, why)


def _require(holds: bool, thresholds: UrlThresholds, name: str, expected: str) -> None:
    if not holds:
        value: Any = getattr(thresholds, name)
        raise UrlFilterError(f"The threshold {name!r} of a filter url is {value!r:.100}, {expected}")


def lists_needed(thresholds: UrlThresholds) -> tuple[str, ...]:
    """Return the lists that the enabled rules read."""
    of_rules = {
        "domains": thresholds.domain or thresholds.subdomain,
        "urls": thresholds.url,
        "hard_words": thresholds.hard_words,
        "soft_words": thresholds.soft_words is not None,
        "subwords": thresholds.subwords,
    }
    return tuple(name for name, is_needed in of_rules.items() if is_needed)
