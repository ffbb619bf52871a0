"""Crawls as they were read: documents, and counts by reason.

`python crawls.py CONFIG`: read WARC files in a process of its own; the config's fields are JSON. It prints the counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marin_assets.documents import Document, list_shards, read_documents
from marin_assets.step.values import unwrap_versioned_value

Read = Callable[..., tuple[dict[str, Any], list[Document]]]


def documents_of(folder: Path | str) -> list[Document]:
    return [document for shard in list_shards(str(folder)) for document in read_documents(shard)]


def reasons(counts: dict[str, Any]) -> dict[str, int]:
    return {key.removeprefix("rejected_"): n for key, n in counts.items() if key.startswith("rejected_") and n}


def reader(
    folder: Path, stage: Callable[[Any], Any], config: Any, *, of: str, kept: str, texts: str = "", **defaults: Any
) -> Read:
    """Run a stage that reads files, in outputs of `folder`, and require that its counts add up and nothing is hidden.

    `of` is the count of all, `kept` that of those in documents, and `texts` that of documents, by default `kept`, which
    also names the outputs, "pages0" and so on.
    """
    numbers = iter(range(1000))

    def run(source: Path | str, /, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
        output = folder / f"{texts or kept}{next(numbers)}"
        given = {"input_path": str(source), "output_path": str(output), **defaults, **fields}
        counts = stage(unwrap_versioned_value(config(**given)))
        assert counts[of] == counts[kept] + counts["rejected"]
        assert counts["rejected"] == sum(reasons(counts).values())
        assert {path.name for path in (output / ".marin").glob("*")} <= {"shards"}
        documents = documents_of(output) if counts[texts or kept] else []
        assert len(documents) == counts[texts or kept]
        assert sum(len(document.text.encode()) for document in documents) == counts["bytes"]
        return counts, documents

    return run


def main() -> None:
    from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc

    print(json.dumps(read_warc(unwrap_versioned_value(ReadWarcConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
