"""Manual pages of Debian in 25 languages as plain texts, without the lines that are not translated.

    apt-get download manpages manpages-{cs,da,de,el,es,fi,fr,hu,id,it,ja,mk,nb,nl,pl,pt-br,ro,ru,sr,sv,tr,uk,vi,zh}

`dpkg-deb -x` each into a folder, and name it in MARIN_DEBIAN_ROOT. A line that pages of two languages share is not
translated, or is code, and is left out; so is a page with little of it left.
"""

from __future__ import annotations

import gzip
import os
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(os.environ.get("MARIN_DEBIAN_ROOT", "/"))
LANGUAGES = {
    "": "eng", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "es": "spa", "fi": "fin", "fr": "fra", "hu": "hun",
    "id": "ind", "it": "ita", "ja": "jpn", "mk": "mkd", "nb": "nob", "nl": "nld", "pl": "pol", "pt_BR": "por",
    "ro": "ron", "ru": "rus", "sr": "srp", "sv": "swe", "tr": "tur", "uk": "ukr", "vi": "vie", "zh_CN": "cmn",
    "zh_TW": "cmn",
}  # fmt: skip
"""Folder below usr/share/man -> the code of its language."""
PAGES, CHARACTERS, FEWEST_CHARACTERS = 150, 4000, 500
FONT = re.compile(r"\\f(\[\w*\]|\(..|.)|\\[&/,|^:!%]|\\s[+-]?\d+")
CHARACTER = re.compile(r"\\(?:\((..)|\[(\w+)\]|(.))")
NAMED = {"hy": "-", "en": "–", "em": "—", "aq": "'", "dq": '"', "lq": "“", "rq": "”", "co": "©", "bu": "•", "ti": "~"}


def man_pages() -> dict[str, list[str]]:
    """Code of a language -> at most 150 texts of at most 4,000 characters; empty without the packages."""
    pages = {folder: _texts_of(folder) for folder in LANGUAGES}
    languages_of_line: defaultdict[str, set[str]] = defaultdict(set)
    for folder, texts in pages.items():
        for line in {line for text in texts for line in text.splitlines()}:
            languages_of_line[line].add(LANGUAGES[folder])
    texts_of: defaultdict[str, list[str]] = defaultdict(list)
    for folder, texts in pages.items():
        own = [[line for line in text.splitlines() if len(languages_of_line[line]) == 1] for text in texts]
        joined = (" ".join(lines)[:CHARACTERS] for lines in own)
        texts_of[LANGUAGES[folder]] += [text for text in joined if _letters(text) >= FEWEST_CHARACTERS]
    return {
        code: random.Random(code).sample(texts, min(PAGES, len(texts))) for code, texts in texts_of.items() if texts
    }


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _texts_of(folder: str) -> list[str]:
    paths = sorted((ROOT / "usr/share/man" / folder).glob("man*/*.gz"))
    regular = [path for path in paths if not path.is_symlink()]
    chosen = random.Random(folder).sample(regular, min(4 * PAGES, len(regular)))
    return [_plain(gzip.decompress(path.read_bytes()).decode("utf-8", "replace")) for path in sorted(chosen)]


def _plain(roff: str) -> str:
    """The lines of text of a page in roff, without requests, macros and fonts."""
    lines = []
    for line in roff.splitlines():
        if line.startswith((".", "'", "\\")) and not line.startswith((".B ", ".I ", ".BR ", ".IR ")):
            continue
        text = FONT.sub("", line.partition(" ")[2] if line.startswith(".") else line)
        lines.append(CHARACTER.sub(lambda match: NAMED.get(match[1] or match[2] or "", match[3] or ""), text).strip())
    return "\n".join(line for line in lines if line)


def confusions(pairs: Counter[tuple[str, str]]) -> str:
    """The most frequent wrong pairs (true, identified), as a line."""
    wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
    return ", ".join(f"{true}->{seen} {count}" for (true, seen), count in wrong[:12])
