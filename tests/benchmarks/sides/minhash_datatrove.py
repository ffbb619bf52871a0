"""datatrove's side of `minhash.py`, run by datatrove's Python: texts as JSON lines, and where signatures go.

Prints the seconds of MinhashDedupSignature, 14 buckets of 8 hashes of 5-grams (its defaults), over all texts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup import MinhashDedupSignature


def main() -> None:
    texts_path, out = sys.argv[1:3]
    lines = Path(texts_path).read_text().splitlines()
    documents = [Document(text=json.loads(line), id=str(i)) for i, line in enumerate(lines)]
    MinhashDedupSignature(output_folder=f"{out}/warm").run(iter([Document(text="Some words. " * 100, id="warm")]))
    stage = MinhashDedupSignature(output_folder=f"{out}/signatures")
    began = time.perf_counter()
    stage.run(iter(documents))
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
