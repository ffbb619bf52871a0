"""Addresses that every machine has, in the texts of its Python and its manuals, and made ones around the lists."""

from __future__ import annotations

import gzip
import random
import re
import sys
import sysconfig
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

ADDRESS = re.compile(rb"(?:https?|ftp)://[^\s<>\"'`\\\x00]{3,2000}")
TEXT_FOLDERS = ("/usr/share/doc", "/usr/share/man", "/usr/share/common-licenses", "/usr/include")
MAX_FILE_BYTES = 4 * 1024**2
BROKEN = [
    "http://[",
    "http://[::1",
    "http://[::1]:80/",
    "http://",
    "//",
    "://",
    "http:///path",
    "example.com",
    "www.example.com/",
    " ",
    "\n",
    "?",
    "http://a\x00b.com/",
    "http://a\ud800.com/\udfff",
    "http://....",
    "http://.com",
    "http://com",
    "http://co.uk/",
    "http://a..b.com/",
    "http://1.2.3.4/sex",
    "http://256.1.1.1/",
    "http://localhost:8080/",
    "http://ex ample.com/",
    "http://example.com\uff03@b.com",
    "http://b\u00fccher.example/\u017fex-nude",
    "http://xn--bcher-kva.example/",
    "http://xn--" + "a" * 100_000 + "-zca.com/",
    "http://" + "a." * 50_000 + "com/",
    "http://x.org/" + "sex-" * 250_000,
    "http://x.org/" + "\u00e9" * 200_000,
    "http://" + "@" * 100_000,
    "data:text/html,nude-sexy",
    "mailto:a@b.org",
    "HTTP://EXAMPLE.COM/SEX",
    "http://x.org/\u0131nter-\u212aey_NUDE",
]


def real_urls(files: list[str]) -> list[str]:
    """Different addresses in `files`, in this Python's library and packages, and in manuals; in no useful order."""
    paths = [Path(file) for file in files]
    for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), *TEXT_FOLDERS):
        paths += sorted(path for path in Path(folder).rglob("*") if path.is_file())
    urls: dict[str, None] = {}
    for path in paths:
        for match in ADDRESS.findall(_content(path, path.as_posix() in files)):
            urls[match.decode("utf-8", "replace").rstrip(").,;")] = None
    return list(urls)


def _content(path: Path, is_whole: bool) -> bytes:
    try:
        if not is_whole and path.stat().st_size > MAX_FILE_BYTES:
            return b""
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error):
        return b""


def made_urls(count: int, real: list[str], lists: dict[str, list[str]], seed: int = 0) -> Iterator[str]:
    """`count` addresses: the broken ones, and variants of entries of the lists and of real addresses."""
    yield from BROKEN
    dice = random.Random(seed)
    for _ in range(count - len(BROKEN)):
        yield dice.choice(MAKERS)(dice, real, lists)


def _host(dice: random.Random, lists: dict[str, list[str]]) -> str:
    domain = dice.choice(lists["domains"])
    return dice.choice(
        [
            domain,
            f"www.{domain}",
            f"a.b-c.{domain}",
            f"my{domain}",
            f"{domain}.org",
            domain.partition(".")[2] or domain,
            domain.upper(),
            domain.title(),
            f"{domain}.",
            f"xn--bcher-kva.{domain}",
            f"b\u00fccher.{domain}",
            domain.replace(".", "\u3002"),
        ]
    )


def _of_domain(dice: random.Random, real: list[str], lists: dict[str, list[str]]) -> str:
    scheme = dice.choice(["http://", "https://", "HTTPS://", "//", "", "ftp://"])
    user = dice.choice(["", "", "", "user@", "user:p@ss@", "sex:nude@"])
    port = dice.choice(["", "", ":80", ":8080", ":", ":x"])
    rest = dice.choice(["", "/", "/index.html", "?q=1", "#top", "/a/b?c=d#e", "\\x", "/\u00e9"])
    return f"{scheme}{user}{_host(dice, lists)}{port}{rest}"


def _of_words(dice: random.Random, real: list[str], lists: dict[str, list[str]]) -> str:
    words = [
        dice.choice(lists[dice.choice(["hard_words", "soft_words", "subwords"])]) for _ in range(dice.randint(1, 3))
    ]
    changed = [dice.choice([str, str, str.upper, str.title, "un{}ed".format, "{}s".format])(word) for word in words]
    between = dice.choice(["-", "_", ".", "/", "+", "%20", "", "\u00e9", "&w="])
    place = dice.choice(["http://example.org/{}", "http://example.org/?q={}&x=1", "https://{}.example.org/", "{}"])
    return place.format(between.join(changed))


def _of_real(dice: random.Random, real: list[str], lists: dict[str, list[str]]) -> str:
    word = dice.choice(lists[dice.choice(["hard_words", "soft_words", "subwords"])])
    return dice.choice(real) + dice.choice(["/", "?tag=", "#", "-", ""]) + word


def _of_urls(dice: random.Random, real: list[str], lists: dict[str, list[str]]) -> str:
    url = dice.choice(lists["urls"])
    return dice.choice(["", "", "http://", "www."]) + url + dice.choice(["", "", "/", " "])


MAKERS: list[Callable[[random.Random, list[str], dict[str, list[str]]], str]] = [
    _of_domain,
    _of_domain,
    _of_words,
    _of_real,
    _of_urls,
]

if __name__ == "__main__":
    print(len(real_urls(sys.argv[1:])))
