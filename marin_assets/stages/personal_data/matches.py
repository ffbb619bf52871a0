"""All matches of a text, of chosen kinds: disjoint and in order; and the text with a replacement for each.

A replacement is a function of the match: the same address has the same replacement in all documents, in any shard and
on any machine. None is a match itself, so a text that was replaced is not replaced again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from marin_assets.stages.personal_data.account_numbers import cards, ibans, phones
from marin_assets.stages.personal_data.network_addresses import (
    PLACEHOLDERS,
    emails,
    ipv4_addresses,
    ipv6_addresses,
)
from marin_assets.stages.personal_data.secrets import secrets
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

Finder = Callable[[str, Sequence[str]], Iterator[tuple[int, int]]]

FINDERS: dict[str, Finder] = {
    "secret": lambda text, _: secrets(text),
    "email": lambda text, _: emails(text),
    "iban": lambda text, _: ibans(text),
    "card": lambda text, _: cards(text),
    "ipv4": lambda text, _: ipv4_addresses(text),
    "ipv6": lambda text, _: ipv6_addresses(text),
    "phone": phones,
}
"""The kinds. Of two matches that overlap, that of the earlier kind stays."""
KINDS = tuple(FINDERS)
FINEWEB = ("email", "ipv4")
"""The kinds that FineWeb replaces."""
DOCUMENTATION = ("192.0.2", "198.51.100", "203.0.113")
"""Networks that RFC 5737 keeps for documentation."""


class PersonalDataError(MarinError, ValueError):
    """Unknown kinds or regions: one sentence."""


@dataclass(frozen=True, slots=True)
class Match:
    kind: str
    start: int
    end: int
    """[start, end), in characters of the text."""


def check_kinds(kinds: Sequence[str], phone_regions: Sequence[str]) -> None:
    """Raise PersonalDataError unless these are kinds and regions that exist."""
    for name, value in (("kinds", kinds), ("phone_regions", phone_regions)):
        if isinstance(value, str):
            raise PersonalDataError(f"{name} is the text {value!r:.80}, expected a list. Write [{value!r:.80}].")
    if not kinds:
        raise PersonalDataError(f"kinds is empty, expected some of {', '.join(KINDS)}.")
    for kind in kinds:
        if kind not in FINDERS:
            raise PersonalDataError(f"kinds has {kind!r:.80}, {expected_one_of(kind, KINDS)}")
    for region in phone_regions:
        if not (isinstance(region, str) and len(region) == 2 and region.isascii() and region.isupper()):
            raise PersonalDataError(f"phone_regions has {region!r:.80}, expected countries such as 'US' and 'DE'.")


def find_matches(text: str, kinds: Iterable[str], phone_regions: Sequence[str] = ()) -> list[Match]:
    """The matches of these kinds in a text, disjoint and in order. `phone_regions`: countries of local numbers."""
    chosen: list[Match] = []
    for kind in sorted(set(kinds), key=KINDS.index):
        spans = list(FINDERS[kind](text, phone_regions))
        if spans:
            chosen = _with_spans(chosen, kind, spans)
    return chosen


def _with_spans(chosen: Sequence[Match], kind: str, spans: Iterable[tuple[int, int]]) -> list[Match]:
    """The matches with those spans that overlap neither one of them nor an earlier span; in order."""
    starts, added, end = [match.start for match in chosen], list[Match](), 0
    for start, stop in sorted(spans):
        place = bisect_left(starts, stop)
        is_free = place == 0 or chosen[place - 1].end <= start
        if is_free and start >= end:
            added.append(Match(kind, start, stop))
            end = stop
    return sorted([*chosen, *added], key=lambda match: match.start)


def replaced(text: str, matches: Sequence[Match]) -> str:
    """The text with the replacement of each match, which are disjoint and in order."""
    parts, end = [], 0
    for match in matches:
        parts += [text[end : match.start], replacement_of(match.kind, text[match.start : match.end])]
        end = match.end
    return "".join([*parts, text[end:]])


def replacement_of(kind: str, value: str) -> str:
    """The replacement of a value, chosen by its hash: an address or number of that kind that belongs to nobody."""
    number = int.from_bytes(hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    if kind == "email":
        return PLACEHOLDERS[number % len(PLACEHOLDERS)]
    if kind == "ipv4":
        return f"{DOCUMENTATION[number % 3]}.{number // 3 % 254 + 1}"
    if kind == "ipv6":
        return f"2001:db8::{number % 0xFFFF + 1:x}"
    if kind == "card":
        return "0000 0000 0000 0000"
    if kind == "iban":
        return "XX00 0000 0000 0000 0000 00"
    return "+0 000 000 0000" if kind == "phone" else "SECRET"
