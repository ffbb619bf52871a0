"""RedPajama's side of `signals.py`, run by a Python with nltk, numpy and msgspec: app/src, texts as JSON lines, a task.

values    writes a row a text: the value of every signal, of signals of lines a list, each with the spans
seconds   prints the seconds of this process on its core, from text to values
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])

from core.document import Document  # type: ignore[import-not-found]
from core.quality_signals import content, lines, natural_language, repetitions  # type: ignore[import-not-found]


def main() -> None:
    texts = [json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]
    if sys.argv[3] == "seconds":
        measure("Some words. " * 100)
        began = time.process_time()
        for text in texts:
            measure(text)
        print(time.process_time() - began)
        return
    with Path(sys.argv[4]).open("w") as out:
        for text in texts:
            out.write(json.dumps(measure(text)) + "\n")
    print(len(texts))


def measure(text: str) -> dict[str, Any]:
    """The signals of a text, with RedPajama's n-grams computed once for all, as its worker does."""
    document = Document(text, domain=None, precompute_ngrams=True)
    return {signal.field_name: signal(document) for signal in SIGNALS}


SIGNALS = [
    content.RPS_Doc_Lorem_Ipsum(),
    content.RPS_Doc_Curly_Bracket(),
    content.RPS_Doc_Stop_Word_Fraction(language="en"),
    *natural_language.register_natural_language_callables(),
    *lines.register_lines_callables(),
    *repetitions.register_repetitions_callables(),
]

if __name__ == "__main__":
    main()
