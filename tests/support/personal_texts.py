"""Labelled texts in five languages: sentences with personal data or secrets, or with look-alikes."""

from __future__ import annotations

import base64
import ipaddress
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SENTENCES = {
    "en": ["Please contact {} before Friday.", "The value is {}, as agreed.", "See ({}) for details.", "{}"],
    "de": ["Bitte wenden Sie sich bis Freitag an {}.", "Der Wert ist „{}“, wie vereinbart.", "Siehe ({}).", "Neu: {}"],
    "fr": [
        "Veuillez contacter {} avant vendredi.",
        "La valeur est « {} », comme convenu.",
        "Voir ({}).",
        "Nouveau : {}",
    ],
    "es": ["Póngase en contacto con {} antes del viernes.", "El valor es «{}».", "Véase ({}).", "¿{}?"],
    "ru": ["Пишите на {} до пятницы.", "Значение: {}, как договорились.", "См. ({}).", "«{}»"],
}
LOCALS = [
    "ada",
    "Bob.Smith",
    "j.o'neill",
    "m_müller",
    "x-y",
    "info",
    "sales+eu",
    "иван.петров",
    "garcía",
    "a1b2c3",
    "k",
]
DOMAINS = [
    "uni-koeln.de",
    "mail.co.uk",
    "müller.de",
    "почта.рф",
    "a-b.org",
    "x.io",
    "sub.dept.univ.edu",
    "correo.es",
    "example.com",
]
NETWORKS = [
    ("4", 16),
    ("51", 16),
    ("55", 16),
    ("2221", 16),
    ("34", 15),
    ("37", 15),
    ("36", 14),
    ("6011", 16),
    ("35", 16),
]
IBANS = {
    "DE": "n18",
    "GB": "a4n14",
    "FR": "n10c11n2",
    "ES": "n20",
    "NL": "a4n10",
    "RO": "a4c16",
    "CH": "n5c12",
    "NO": "n11",
}
NO_EMAILS = [
    "git@github.com:marin/marin.git", "@scope/pkg@1.2.3", "icon@2x.png", "user@localhost", "a@b", "A@B.to(device)",
    "name(at)host.com", "@ada", "email@example.com", "root@server.invalid", "x@1.2", "https://ada@host.com/path",
    "ssh://git@host.org/x", "p@ss.w0rd", "self@other.T", "…@…", "a@@b.com", "firstname.lastname@example.com",
]  # fmt: skip
NO_IPV4 = [
    "version 8.8.4.4", "v9.9.9.9", "v. 1.2.3.4", "Version 2.14.3.1", "versión 8.8.8.8", "версия 8.8.8.8", "§ 5.6.7.8",
    "10.1.2.3", "192.168.1.1", "127.0.0.1", "169.254.3.4", "172.16.0.9", "0.0.0.0", "224.0.0.1", "255.255.255.255",
    "1.3.6.1.4.1.311", "8.8.8.8.8", "300.1.2.3", "8.8.8", "192.0.2.17", "Chrome/120.0.0.0", "pkg-8.8.8.8",
    "8.8.8.8-beta", "release 8.7.6.5",
]  # fmt: skip
NO_IPV6 = [
    "12:30:45",
    "00:1B:44:11:3A:B7",
    "std::vector",
    "2001:db8::7",
    "fe80::1",
    "::1",
    "fd00::12",
    "2024:11:28",
    "a::b",
]
NO_CARDS = [
    "978-3-16-148410-0", "4111 1111 1111 1112", "2026-11-28 10:30:00", "1234 5678 9012 3456", "3.141592653589793",
    "490154203237518", "0000 0000 0000 0000", "4929-1111", "#4539578763621486", "+4539578763621486", "5105105105105",
]  # fmt: skip
NO_IBANS = [
    "DE89 3704 0044 0532 0130 01",
    "XX00 0000 0000 0000 0000 00",
    "GB82 WEST 1234",
    "ZZ68 5390 0754 7034",
    "DE123456",
]
NO_SECRETS = [
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-api-key-goes-here-please-ok",
    "hf_token", "postgres://me:${PASSWORD}@db/x", "-----BEGIN PUBLIC KEY-----",
    "ghp_short", "AKIA1234", "xoxb-", "eyJhbGciOi", "sk-1", "AIzaSy", "https://host.com:8080/a@b",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    kind: str
    """That of the match, or of that which the text looks like."""
    text: str
    span: tuple[int, int] | None
    """None: the text has no match of any kind."""


def labelled_texts(seed: int = 0) -> Iterator[LabelledText]:
    """2,700 texts: of each of six kinds 300 with a match and 150 without."""
    draw = random.Random(seed)
    for kind, (make, look_alikes) in GENERATORS.items():
        for number in range(450):
            language = sorted(SENTENCES)[number % len(SENTENCES)]
            sentence = draw.choice(SENTENCES[language])
            before = sentence[: sentence.index("{")]
            is_match = number % 3 != 0
            whole, value = make(draw) if is_match else (look_alikes[number // 3 % len(look_alikes)], "")
            start = len(before) + whole.index(value)
            yield LabelledText(
                kind=kind, text=sentence.replace("{}", whole), span=(start, start + len(value)) if is_match else None
            )


def _email(draw: random.Random) -> tuple[str, str]:
    value = f"{draw.choice(LOCALS)}@{draw.choice(DOMAINS)}"
    return draw.choice(["{}", "mailto:{}", "<{}>", "{};"]).replace("{}", value), value


def _ipv4(draw: random.Random) -> tuple[str, str]:
    while True:
        address = ipaddress.IPv4Address(draw.getrandbits(32))
        if address.is_global and not address.is_multicast:
            return draw.choice(["{}", "{}:443", "{}/24", "{},"]).replace("{}", str(address)), str(address)


def _ipv6(draw: random.Random) -> tuple[str, str]:
    prefix = draw.choice([0x2A00_1450, 0x2600_1F18, 0x2001_4860, 0x2406_DA00])
    low = draw.getrandbits(draw.choice([16, 64]))
    value = str(ipaddress.IPv6Address((prefix << 96) | low))
    return draw.choice(["{}", "[{}]:443", "{}/64"]).replace("{}", value), value


def _card(draw: random.Random) -> tuple[str, str]:
    first, length = draw.choice(NETWORKS)
    first = "3530" if first == "35" else first
    digits = first + "".join(draw.choice(string.digits) for _ in range(length - len(first) - 1))
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[::-2])
    digits += str(-(doubled + sum(map(int, digits[-2::-2]))) % 10)
    sizes = {16: (4, 4, 4, 4), 15: (4, 6, 5), 14: (4, 6, 4)}[length]
    groups = [digits[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    value = draw.choice(["", " ", "-"]).join(groups)
    return value, value


def _iban(draw: random.Random) -> tuple[str, str]:
    country = draw.choice(sorted(IBANS))
    alphabets = {"n": string.digits, "a": string.ascii_uppercase, "c": string.digits + string.ascii_uppercase}
    pattern, account = IBANS[country], ""
    while pattern:
        kind, rest = pattern[0], pattern[1:]
        size = rest[: next((i for i, character in enumerate(rest) if character.isalpha()), len(rest))]
        account += "".join(draw.choice(alphabets[kind]) for _ in range(int(size)))
        pattern = rest[len(size) :]
    number = int("".join(str(int(character, 36)) for character in account + country + "00"))
    compact = f"{country}{98 - number % 97:02}{account}"
    value = draw.choice([compact, " ".join(compact[i : i + 4] for i in range(0, len(compact), 4))])
    return value, value


def _secret(draw: random.Random) -> tuple[str, str]:
    def of(alphabet: str, count: int) -> str:
        return "".join(draw.choice(alphabet) for _ in range(count))

    mixed, upper = string.ascii_letters + string.digits, string.ascii_uppercase + string.digits
    password = of(mixed + "!$#%", 12)
    key = base64.b64encode(draw.randbytes(300)).decode()
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{key}\n-----END RSA PRIVATE KEY-----"
    return draw.choice([
        (value := "AKIA" + of(upper, 16), value),
        (value := "ghp_" + of(mixed, 36), value),
        (value := f"xoxb-{of(string.digits, 12)}-{of(mixed, 24)}", value),
        (value := "AIza" + of(mixed + "_-", 34) + "x", value),
        (value := "sk-proj-" + of(mixed, 48), value),
        (value := "hf_" + of(string.ascii_letters, 34), value),
        (value := f"eyJ{of(mixed, 20)}.eyJ{of(mixed, 60)}.{of(mixed, 43)}", value),
        (f"postgres://ada:{password}@db.host.org:5432/x", password),
        (block, block),
    ])  # fmt: skip


GENERATORS: dict[str, tuple[Callable[[random.Random], tuple[str, str]], list[str]]] = {
    "email": (_email, NO_EMAILS),
    "ipv4": (_ipv4, NO_IPV4),
    "ipv6": (_ipv6, NO_IPV6),
    "card": (_card, NO_CARDS),
    "iban": (_iban, NO_IBANS),
    "secret": (_secret, NO_SECRETS),
}
