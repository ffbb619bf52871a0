"""Numbers of payment cards and bank accounts, and phone numbers in a text, each with its checksum or its plan.

Cards: ISO/IEC 7812 with Luhn's checksum. Accounts: ISO 13616 (IBAN) with the length of the country and modulo 97.
Phones: the numbering plans of libphonenumber.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]

CARD = re.compile(r"(?<![\w.,#/+=-])[2-6](?:[ \u00a0-]?\d){11,18}(?![\w/=-]|[.,]\d)")
NETWORKS: tuple[tuple[range, int, frozenset[int]], ...] = (
    (range(4, 5), 1, frozenset({13, 16, 19})),  # Visa
    (range(51, 56), 2, frozenset({16})),  # Mastercard
    (range(2221, 2721), 4, frozenset({16})),
    (range(34, 35), 2, frozenset({15})),  # American Express
    (range(37, 38), 2, frozenset({15})),
    (range(36, 37), 2, frozenset({14})),  # Diners Club
    (range(38, 40), 2, frozenset({14})),
    (range(300, 306), 3, frozenset({14})),
    (range(6011, 6012), 4, frozenset({16})),  # Discover
    (range(644, 660), 3, frozenset({16})),
    (range(3528, 3590), 4, frozenset({16})),  # JCB
    *((range(first, first + 1), 4, frozenset(range(12, 20))) for first in (5018, 5020, 5038, 5893, 6304)),  # Maestro
    *((range(first, first + 1), 4, frozenset(range(12, 20))) for first in (6759, 6761, 6762, 6763)),
    (range(62, 63), 2, frozenset({16, 17, 18, 19})),  # UnionPay
)
"""First numbers, their digits, and the digits of a card."""
GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (6, 13), (4, 4, 4, 1))
"""Lengths of the groups in which cards are written."""
IBAN = re.compile(r"(?<![\w-])([A-Z]{2}\d{2})((?:[ \u00a0]?[A-Z0-9]{4}){2,7}(?:[ \u00a0]?[A-Z0-9]{1,3})?)(?![\w-])")
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip
"""Characters of an IBAN by its country, of SWIFT's registry."""


def cards(text: str) -> Iterator[Span]:
    """The numbers of payment cards of a text."""
    for match in CARD.finditer(text):
        groups = re.split("[ \u00a0-]", match[0])
        digits = "".join(groups)
        is_written_so = len(groups) == 1 or tuple(map(len, groups)) in GROUPS
        if is_written_so and len({*re.sub(r"\d", "", match[0])}) <= 1 and _is_card(digits):
            yield match.span()


def _is_card(digits: str) -> bool:
    network = any(int(digits[:size]) in firsts and len(digits) in lengths for firsts, size, lengths in NETWORKS)
    return network and len(set(digits)) > 1 and _luhn(digits)


def _luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def ibans(text: str) -> Iterator[Span]:
    """The numbers of bank accounts of a text; one with more characters behind it ends where its country has it end."""
    for match in IBAN.finditer(text):
        length, compact, end = IBAN_LENGTHS.get(match[0][:2], 0), "", match.start()
        while end < match.end() and len(compact) < length:
            compact += text[end].strip()
            end += 1
        if length and len(compact) == length and _has_checksum(compact) and not text[end : end + 1].isalnum():
            yield match.start(), end


def _has_checksum(iban: str) -> bool:
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97 == 1


def phones(text: str, regions: Sequence[str]) -> Iterator[Span]:
    """The phone numbers of a text: with a country code, and without one by the plans of these regions ("US", "DE")."""
    import phonenumbers  # of the extra "curate"

    if not any(map(str.isdigit, text)):
        return
    plans = regions or (None,)
    matches = (match for plan in plans for match in phonenumbers.PhoneNumberMatcher(text, plan))
    yield from sorted({(match.start, match.end) for match in matches})
