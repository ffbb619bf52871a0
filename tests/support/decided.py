"""Documents with decisions of them, written and consolidated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents
from marin_assets.documents.attributes import KEPT, Decision, read_attributes, write_decisions
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json

DecisionRule = Callable[[Document], Decision]


def by_length(document: Document) -> Decision:
    size = len(document.text)
    return Decision(size >= 80, "" if size >= 80 else "too_short", value=float(size))


def by_case(document: Document) -> Decision:
    if document.text.isupper():
        return Decision(False, "shouted")
    return Decision(False, "title") if document.text.istitle() else KEPT


def without_first_line(document: Document) -> Decision:
    return Decision(True, cut=((0, len(document.text.split("\n")[0])),))


def without_quotes(document: Document) -> Decision:
    return Decision(True, cut=tuple((m.start(), m.end()) for m in re.finditer(r'"[^"\n]*"', document.text)))


RULES: dict[str, DecisionRule] = {
    "length": by_length,
    "case": by_case,
    "lines": without_first_line,
    "quotes": without_quotes,
}


class Corpus:
    """Documents with attributes below one folder."""

    def __init__(self, folder: Path, documents: Sequence[Document], shards: int = 3) -> None:
        self.folder = folder
        for i in range(shards):
            name, part = shard_name(i, shards), documents[i::shards]
            write_documents(f"{folder}/documents/{name}", part)
            for attribute, decide in RULES.items():
                self.write(attribute, name, [(d.id, decide(d)) for d in part])

    def write(self, attribute: str, shard: str, rows: list[tuple[str, Decision]]) -> None:
        write_decisions(f"{self.folder}/{attribute}/{shard}", rows, Counter(), replace=True)

    def rows(self, attribute: str, shard: str) -> list[tuple[str, Decision]]:
        return list(read_attributes(f"{self.folder}/{attribute}/{shard}"))

    def consolidate(self, *names: str, out: str = "out", **changes: Any) -> dict[str, Any]:
        return self.apply(*(Applied(name=name, path=f"{self.folder}/{name}") for name in names), out=out, **changes)

    def apply(self, *applied: Applied, out: str = "out", **changes: Any) -> dict[str, Any]:
        config = ConsolidateConfig(
            documents_path=f"{self.folder}/documents",
            attributes=applied,
            output_path=f"{self.folder}/{out}",
            **changes,
        )
        return consolidate(unwrap_versioned_value(config))

    def kept(self, out: str = "out") -> list[Document]:
        return [d for shard in list_shards(f"{self.folder}/{out}") for d in read_documents(shard)]

    def json(self, name: str, out: str = "out") -> Any:
        return read_json(f"{self.folder}/{out}/{name}.json")


def data_below(folder: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: data for name, data in found.items() if not name.startswith(".marin/shards")}
