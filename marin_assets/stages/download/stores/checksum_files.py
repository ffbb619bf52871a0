"""Files of checksums: `sha1sums.txt`, `SHA256SUMS`, `a.tar.gz.md5`.

    e3b0c442…  a name with spaces.bin        as sha256sum, md5sum and others write it
    e3b0c442… *a.bin                         in binary mode
    \\e3b0c442…  a\\nb.bin                     with an escaped line feed or backslash in the name
    SHA256 (a.bin) = e3b0c442…               as BSD, `--tag` and openssl write it
    e3b0c442…                                alone, for a single file

The length of a checksum is its kind: MD5 has 32 digits, SHA-1 40, SHA-256 64, SHA-512 128, CRC32C 8.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from marin_assets.stages.download.stores.access import StoreAccess
from marin_assets.stages.download.stores.small_files import read_text
from marin_assets.stages.download.stores.source_file import Expected, SourceError
from marin_resources.storage.files import REQUESTS_AT_ONCE

NAME = "{name}"
"""In the path of a file of checksums: the name of a file, for one that has its own, as "https://a.org/{name}.md5"."""
KIND_OF = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512", 8: "crc32c"}
GNU = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9A-Fa-f]+)(?:(?: [ *]|[ \t]+)(?P<name>\S.*))?")
BSD = re.compile(r"(?P<escaped>\\?)(?P<kind>[A-Za-z0-9][A-Za-z0-9_/-]*) ?\((?P<name>.+)\) ?= ?(?P<digest>[0-9A-Fa-f]+)")
SIGNATURES = ("", ".asc", ".gpg", ".sig", ".sign")
"""Endings of the file itself and of its signatures, which it cannot have."""
SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Line:
    name: str
    """"" for a checksum alone."""
    kind: str
    digest: str


def expected_of(
    path: str, names: Iterable[str], *, access: StoreAccess, output_path: str
) -> tuple[dict[str, Expected], list[str]]:
    """The expected checksum of each file, by name, and the names that have none.

    `path`: a file of checksums, or a form with NAME. A line is that of a file if its name is the file's, or the end of
    it below a folder, or the other way round. Raises SourceError for a file that cannot be read, for a line without a
    checksum, and for two lines of a file that differ; FileNotFoundError.
    """
    names = sorted(names)
    if NAME in path:
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            places = [path.replace(NAME, name) for name in names]
            lines = list(pool.map(lambda place: _lines(place, access, output_path), places))
        alone = {name: _own(place, name, of_place) for name, place, of_place in zip(names, places, lines, strict=True)}
        return alone, []
    lines_by_end = _by_end(_lines(path, access, output_path))
    own = path.rstrip("/").rpartition("/")[2]
    expected, unchecked = {}, []
    for name in names:
        matched = _matched(name, lines_by_end, path, alone=len(names) == 1)
        if matched is not None:
            expected[name] = _expected(matched, path)
        elif name.rpartition("/")[2] not in {f"{own}{ending}" for ending in SIGNATURES}:
            unchecked.append(name)
    return expected, unchecked


def require_all(path: str, unchecked: list[str]) -> None:
    """Raise SourceError for files without a checksum."""
    if unchecked:
        first = ", ".join(map(repr, unchecked[:SHOWN]))
        raise SourceError(
            f"The file of checksums {path!r} has no line for {first} ({len(unchecked):,} files in all), expected one "
            "for each file. Correct it, choose other files, or set allow_unchecked=True."
        )


def parsed(text: str, path: str) -> list[Line]:
    """The lines of a file of checksums. Raises SourceError for one that has none, and for a line without one."""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            lines.append(_parsed(line.rstrip("\r"), number, path))
    if not lines:
        raise SourceError(f"The file of checksums {path!r} has no line, expected a checksum and a name on each.")
    return lines


def _parsed(line: str, number: int, path: str) -> Line:
    bsd, gnu = BSD.fullmatch(line.strip()), GNU.fullmatch(line.strip())
    match = bsd or gnu
    kind = KIND_OF.get(len(match["digest"])) if match else None
    if match is None or kind is None or (bsd and _spelled(bsd["kind"]) not in (kind, "")):
        raise SourceError(
            f"The file of checksums {path!r} has the line {number} {line!r:.100}, expected an MD5, SHA-1, SHA-256, "
            "SHA-512 or CRC32C in hexadecimal, and a name. Correct it, or pass another file."
        )
    name = match["name"] or ""
    if match["escaped"]:
        name = re.sub(r"\\([\\nr])", lambda escape: {"n": "\n", "r": "\r"}.get(escape[1], "\\"), name)
    return Line(name=name.removeprefix("./"), kind=kind, digest=match["digest"].lower())


def _spelled(kind: str) -> str:
    """A kind of KIND_OF for "SHA256", "SHA2-256" and "SHA-256"; "" for another."""
    plain = kind.lower().replace("-", "").replace("sha2256", "sha256").replace("sha2512", "sha512")
    return plain if plain in KIND_OF.values() else ""


def _lines(path: str, access: StoreAccess, output_path: str) -> list[Line]:
    return parsed(read_text(path, access, output_path), path)


def _own(path: str, name: str, lines: list[Line]) -> Expected:
    last = name.rpartition("/")[2]
    own = [line for line in lines if line.name.rpartition("/")[2] in ("", last)]
    if not own:
        raise SourceError(
            f"The file of checksums {path!r} is of {lines[0].name!r}, expected one of {last!r}. Correct checksum_file."
        )
    return _expected(own[-1], path)


def _by_end(lines: Iterable[Line]) -> Mapping[str, list[Line]]:
    by_end = defaultdict(list)
    for line in lines:
        by_end[line.name.rpartition("/")[2]].append(line)
    return by_end


def _matched(name: str, lines: Mapping[str, list[Line]], path: str, *, alone: bool) -> Line | None:
    """The line of a file; None if it has none. Raises SourceError for two that differ."""
    last = name.rpartition("/")[2]
    near = [line for line in lines.get(last, []) if _is_end(line.name, name) or _is_end(name, line.name)]
    exact = [line for line in near if line.name == name]
    matched = exact or near or (lines.get("", []) if alone else [])
    strongest = [line for line in matched if line.kind == max(matched, key=lambda other: len(other.digest)).kind]
    if len({line.digest for line in strongest}) > 1:
        raise SourceError(
            f"The file of checksums {path!r} has {len(strongest)} lines for {name!r} with different checksums, such as "
            f"{strongest[0].digest!r} and {strongest[-1].digest!r}. Correct it."
        )
    return strongest[0] if strongest else None


def _is_end(end: str, name: str) -> bool:
    return name == end or name.endswith(f"/{end}")


def _expected(line: Line, path: str) -> Expected:
    return Expected(kind=line.kind, digest=line.digest, by=repr(path))
