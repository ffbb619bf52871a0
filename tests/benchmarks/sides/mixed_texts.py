"""Texts in many languages from Debian's packages: manual pages, references, the kernel's documentation, fortunes.

    python tests/benchmarks/sides/mixed_texts.py FILE [PER_SOURCE]

writes rows {"source", "text"}. It needs apt-get, dpkg-deb, groff and the packages of Debian 12. Manual pages are
rendered as `man` prints them.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filters_texts import cut

MANUALS = {
    "man, English": ("manpages", "manpages-dev"),
    "man, German": ("manpages-de",),
    "man, French": ("manpages-fr",),
    "man, Spanish": ("manpages-es",),
    "man, Italian": ("manpages-it",),
    "man, Portuguese": ("manpages-pt-br",),
    "man, Dutch": ("manpages-nl",),
    "man, Romanian": ("manpages-ro",),
    "man, Danish": ("manpages-da",),
    "man, Swedish": ("manpages-sv",),
    "man, Czech": ("manpages-cs",),
    "man, Hungarian": ("manpages-hu",),
    "man, Serbian": ("manpages-sr",),
    "man, Greek": ("manpages-el",),
    "man, Polish": ("manpages-pl",),
    "man, Turkish": ("manpages-tr",),
    "man, Vietnamese": ("manpages-vi",),
    "man, Russian": ("manpages-ru",),
    "man, Ukrainian": ("manpages-uk",),
    "man, Japanese": ("manpages-ja",),
    "man, Chinese": ("manpages-zh",),
}
FORTUNES = {
    "fortunes, English": "fortunes",
    "fortunes, German": "fortunes-de",
    "fortunes, Italian": "fortunes-it",
    "fortunes, Polish": "fortunes-pl",
    "fortunes, Russian": "fortunes-ru",
    "fortunes, Chinese": "fortunes-zh",
}
REFERENCES = {
    "reference, German": "debian-reference-de",
    "reference, French": "debian-reference-fr",
    "reference, Italian": "debian-reference-it",
    "reference, Portuguese": "debian-reference-pt",
    "reference, Japanese": "debian-reference-ja",
    "reference, Chinese": "debian-reference-zh-cn",
}
KERNEL = {"kernel, English": "Documentation", "kernel, translated": "translations"}
SEED = 0
PIECES = 12
"""At most, of one page: a long one does not outweigh the others."""


def mixed_texts(per_source: int) -> list[tuple[str, str]]:
    """Return (source, text), at most `per_source` of each source."""
    with tempfile.TemporaryDirectory() as folder:
        packages = {*(name for names in MANUALS.values() for name in names), *FORTUNES.values()}
        packages |= {*REFERENCES.values(), "linux-doc-6.1"}
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: _unpack(name, folder), sorted(packages)))
        return [
            *((source, text) for source, names in MANUALS.items() for text in _manuals(folder, names, per_source)),
            *((source, text) for source, name in FORTUNES.items() for text in _fortunes(folder, name, per_source)),
            *((source, text) for source, name in REFERENCES.items() for text in _reference(folder, name, per_source)),
            *((source, text) for source in KERNEL for text in _kernel(folder, source, per_source)),
        ]


def _unpack(name: str, folder: str) -> None:
    place = Path(folder) / name
    place.mkdir()
    subprocess.run(["apt-get", "download", "-q", name], cwd=place, check=True, capture_output=True)
    [package] = place.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=place, check=True)


def _manuals(folder: str, names: tuple[str, ...], count: int) -> Iterator[str]:
    paths = [path for name in names for path in _shuffled(Path(folder, name).glob("usr/share/man/**/man*/*.gz"))]
    pieces: list[str] = []
    for path in paths[: 2 * count]:
        if len(pieces) >= count:
            break
        source = gzip.decompress(path.read_bytes())
        if len(source) > 500:  # shorter: a reference to another page
            done = subprocess.run(
                ["groff", "-Kutf8", "-Tutf8", "-man", "-t", "-P-cbou", "-w", "none"],
                input=source,
                capture_output=True,
                check=False,
            )
            pieces += list(cut(done.stdout.decode(errors="replace")))[:PIECES]
    yield from pieces[:count]


def _fortunes(folder: str, name: str, count: int) -> Iterator[str]:
    paths = _shuffled(path for path in Path(folder, name).rglob("games/fortunes/**/*") if path.is_file())
    texts = (path.read_text(errors="replace") for path in paths if path.suffix not in (".dat", ".u8"))
    joined = "\n\n".join("\n\n".join(re.split(r"\n%+\n", text)) for text in texts)
    pieces = list(cut(re.sub(r"\x1b\[[0-9;]*m", "", joined)))
    yield from _shuffled(pieces)[:count]


def _reference(folder: str, name: str, count: int) -> Iterator[str]:
    [path] = Path(folder, name).glob("usr/share/debian-reference/*.txt.gz")
    yield from list(cut(gzip.decompress(path.read_bytes()).decode(errors="replace")))[:count]


def _kernel(folder: str, source: str, count: int) -> Iterator[str]:
    translated = source == "kernel, translated"
    paths = (
        path
        for path in Path(folder, "linux-doc-6.1").rglob("*.rst*")
        if path.is_file() and ("translations" in path.parts) == translated
    )
    pieces: list[str] = []
    for path in _shuffled(paths):
        if len(pieces) >= count:
            break
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
        pieces += list(cut(text))[:PIECES]
    yield from pieces[:count]


def _shuffled(found: Iterable[Any]) -> list[Any]:
    items = sorted(found)
    random.Random(SEED).shuffle(items)
    return items


if __name__ == "__main__":
    rows = mixed_texts(int(sys.argv[2]) if len(sys.argv) > 2 else 300)
    Path(sys.argv[1]).write_text("".join(json.dumps({"source": s, "text": t}) + "\n" for s, t in rows))
    print(len(rows))
