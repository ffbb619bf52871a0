"""Rows of known sets as texts with a domain. A layout names the fields of a row's text and of its domain."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents import BadRow, document_files, read_rows
from marin_resources.types.errors import MarinError

STEM = re.compile(r"^(?:val|test|validation)_|[_-]?\d{6,8}(?:to\d{6,8})?$")
"""The parts of a file's name around its domain: the split in front, and dates at the end."""


class TextError(MarinError, ValueError):
    """A set cannot be read as texts. The message names the row and what was expected."""


@dataclass(frozen=True)
class Layout:
    """The fields of a row's text and of its domain."""

    text: tuple[str, ...] = ("text",)
    """Names of the field with the text; the first that a row has counts."""
    domain: tuple[str, ...] = ()
    """Names of the field with the domain, "metadata.lang" for one in another; the first that a row has counts."""
    by_file: bool = False
    """Name a row without a domain after its file, without split and dates; if False, after its folder."""


LAYOUTS: Mapping[str, Layout] = {
    "documents": Layout(domain=("source",)),
    "paloma": Layout(domain=("subdomain", "metadata.subdomain", "source")),
    # Paloma (Magnusson et al. 2023, arXiv 2312.10523): files <source>/val/val_….jsonl.gz
    "uncheatable": Layout(text=("text", "content"), by_file=True),
    # Uncheatable Eval: files <domain>_<from>to<to>.jsonl.gz of texts that are newer than the models
}


@dataclass(frozen=True)
class Text:
    id: str
    domain: str
    text: str


def text_files(path: str) -> list[str]:
    """The files of a set, below its folder. Raises FileNotFoundError if it has none."""
    return [file.path for file in document_files(path).shards]


def read_texts(file: str, layout: Layout, *, root: str, empty: Counter[str] | None = None) -> Iterator[Text]:
    """Yield the texts of one file, in order. `root` is the set's folder. `empty` counts the texts "", by domain, which
    are passed over.

    Raises TextError for a row without a text, DocumentError for a damaged file.
    """
    for number, row in read_rows(file):
        if isinstance(row, BadRow):
            raise TextError(f"Row {number} of {file!r} is no row: {row.reason}. Write or download the file again.")
        text = next((row[name] for name in layout.text if row.get(name) is not None), None)
        if not isinstance(text, str):
            raise TextError(
                f"Row {number} of {file!r} has no text in {' or '.join(map(repr, layout.text))}; it has "
                f"{', '.join(map(repr, sorted(row)))}. Choose another layout of {', '.join(LAYOUTS)}."
            )
        domain = _domain(row, layout, file, root)
        if text:
            yield Text(str(row.get("id", f"{posixpath.basename(file)}:{number}")), domain, text)
        elif empty is not None:
            empty[domain] += 1


def _domain(row: Mapping[str, Any], layout: Layout, file: str, root: str) -> str:
    for name in layout.domain:
        value: Any = row
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value:
            return value
    relative = posixpath.relpath(file, root) if file != root else posixpath.basename(file)
    folder, _, name = relative.rpartition("/")
    stem = STEM.sub("", STEM.sub("", name.partition(".")[0]))
    return stem if layout.by_file or not folder else folder.partition("/")[0]
