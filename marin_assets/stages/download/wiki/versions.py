"""Articles that occur twice in a dump: the row with the greatest version stays.

A file of versions has for each row of the parts, in their order, the article's number and version, 16 bytes, and after
them the number of its wiki. All wikis are few, so 24 bytes of memory hold a row.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.stages.download.wiki.articles import Article
from marin_resources.storage.files import read_bytes, write_bytes


@dataclass(kw_only=True)
class Versions:
    """The versions of the articles of one dump file, and the rows of its parts."""

    wikis: dict[str, int] = field(default_factory=dict)
    """Wiki -> its number in `rows`."""
    rows: array[int] = field(default_factory=lambda: array("q"))
    """Wiki, article and version of each row."""
    parts: list[int] = field(default_factory=list)
    """Rows of each part."""

    def add(self, article: Article) -> None:
        wiki = self.wikis.setdefault(article.wiki, len(self.wikis))
        self.rows.extend((wiki, article.number, article.version))

    def write(self, path: str) -> None:
        head = json.dumps({"wikis": list(self.wikis), "parts": self.parts}).encode()
        write_bytes(path, head + b"\n" + self.rows.tobytes())


def read_versions(path: str) -> Versions:
    head, _, rows = read_bytes(path).partition(b"\n")
    facts = json.loads(head)
    return Versions(
        wikis={wiki: number for number, wiki in enumerate(facts["wikis"])}, rows=array("q", rows), parts=facts["parts"]
    )


def superseded(files: Sequence[Versions]) -> list[bytes]:
    """For each row of each file one byte: 1 if a later row or another file has the same article in a greater version,
    or an earlier one in the same version; else 0."""
    import numpy as np

    numbers: dict[str, int] = {}
    tables: list[Any] = []
    for versions in files:
        table = np.array(versions.rows, dtype=np.int64).reshape(-1, 3)
        numbered = np.array([numbers.setdefault(wiki, len(numbers)) for wiki in versions.wikis], dtype=np.int64)
        if len(table):
            table[:, 0] = numbered[table[:, 0]]
        tables.append(table)
    rows = np.concatenate(tables) if tables else np.zeros((0, 3), dtype=np.int64)
    ends = np.cumsum([len(table) for table in tables], dtype=np.int64)[:-1]
    return [bytes(of_file.astype(np.uint8)) for of_file in np.split(repeated_rows(rows), ends)]


def repeated_rows(rows: Any) -> Any:
    """Whether another row has the same first two numbers and a greater third one, or the same one and is before it."""
    import numpy as np

    order = np.lexsort((-rows[:, 2], rows[:, 1], rows[:, 0]))  # stable: the first of equal rows stays first
    ordered = rows[order]
    repeated = np.zeros(len(rows), dtype=bool)
    repeated[order[1:]] = (ordered[1:, :2] == ordered[:-1, :2]).all(axis=1)
    return repeated
