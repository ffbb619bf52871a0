"""datatrove's side of `filters.py`, run by datatrove's Python: texts as JSON lines, a task, where decisions go.

decisions   each of the four filters asked alone of every text: [keep, reason, text after it]
seconds    the four in FineWeb's order, each of what the one before leaves
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)


def main() -> None:
    texts_path, task = sys.argv[1], sys.argv[2]
    texts = [json.loads(line) for line in Path(texts_path).read_text().splitlines()]
    filters = {
        "gopher_repetition": GopherRepetitionFilter(),
        "gopher_quality": GopherQualityFilter(),
        "c4": C4QualityFilter(filter_no_terminal_punct=False),
        "c4_strict": C4QualityFilter(),
        "fineweb": FineWebQualityFilter(),
    }
    if task == "seconds":
        print(json.dumps(seconds([f for name, f in filters.items() if name != "c4_strict"], texts)))
        return
    with Path(sys.argv[3]).open("w") as out:
        for text in texts:
            out.write(json.dumps({name: decision(one, text) for name, one in filters.items()}) + "\n")
    print(json.dumps(len(texts)))


def seconds(filters: list[Any], texts: list[str]) -> float:
    """Of this process on its core, for the chain over all texts; spaCy is loaded before."""
    chain(filters, Document(text="Some words. " * 100, id="warm"))
    documents = [Document(text=text, id=str(i)) for i, text in enumerate(texts)]
    began = time.process_time()
    for document in documents:
        chain(filters, document)
    return time.process_time() - began


def chain(filters: list[Any], document: Document) -> Any:
    for one in filters:
        result = one.filter(document)
        if result is not True:
            return result
    return True


def decision(one: Any, text: str) -> list[Any]:
    document = Document(text=text, id="")
    result = one.filter(document)
    keep, reason = result if isinstance(result, tuple) else (result, "")
    return [bool(keep), reason, document.text if document.text != text else None]


if __name__ == "__main__":
    main()
