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

Read = Callable[..., tuple[dict[str, Any], list[Document]]]


def documents_of(folder: Path | str) -> list[Document]:
    return [document for shard in list_shards(str(folder)) for document in read_documents(shard)]


def reasons(counts: dict[str, Any]) -> dict[str, int]:
    return {key.removeprefix("rejected_"): n for key, n in counts.items() if key.startswith("rejected_") and n}


def main() -> None:
    from marin_assets.stages.download.crawl.read_warc import ReadWarcConfig, read_warc
    from marin_assets.step.values import unwrap_versioned_value

    print(json.dumps(read_warc(unwrap_versioned_value(ReadWarcConfig(**json.loads(sys.argv[1]))))))


if __name__ == "__main__":
    main()
