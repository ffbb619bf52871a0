"""datatrove's side of `fineweb2_filters.py`, run by datatrove's Python: {"tag", "text"}, thresholds by tag, output.

Each of FineWeb-2's three filters is asked alone of every text: [keep, reason]. The last line printed is the seconds of
this process for all, without the loading of the words of each language.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    filters = {tag: filters_of(tag, **given) for tag, given in json.loads(Path(sys.argv[2]).read_text()).items()}
    for of_tag in filters.values():
        for one in of_tag.values():
            one.filter(Document(text="Some words. " * 100, id="warm"))
    began = time.process_time()
    with Path(sys.argv[3]).open("w") as out:
        for row in rows:
            decisions = {name: decision(one, row["text"]) for name, one in filters[row["tag"]].items()}
            out.write(json.dumps(decisions) + "\n")
    print(json.dumps(time.process_time() - began))


def filters_of(
    tag: str, gopher_repetition: dict[str, Any], fineweb: dict[str, Any], gopher_quality: dict[str, Any]
) -> dict[str, Any]:
    """The filters as FineWeb-2's pipeline builds them; a threshold of None is disabled."""
    return {
        "gopher_repetition": GopherRepetitionFilter(
            language=tag,
            dup_line_frac=gopher_repetition["dup_line_frac"],
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            top_n_grams=tuple((n, gopher_repetition[f"top_{n}_gram"]) for n in (2, 3, 4)),
            dup_n_grams=tuple((n, gopher_repetition[f"dup_{n}_gram"]) for n in range(5, 11)),
        ),
        "fineweb": FineWebQualityFilter(
            language=tag,
            short_line_thr=999,
            char_duplicates_ratio=fineweb["char_dup_ratio"],
            line_punct_thr=fineweb["line_punct_ratio"],
            new_line_ratio=fineweb["list_ratio"],
        ),
        "gopher_quality": GopherQualityFilter(
            language=tag,
            min_avg_word_length=gopher_quality["min_mean_word_length"],
            max_avg_word_length=gopher_quality["max_mean_word_length"],
            stop_words=gopher_quality["stop_words"],
            max_non_alpha_words_ratio=gopher_quality["min_alphabetic_word_ratio"],
            min_stop_words=2,
        ),
    }


def decision(one: Any, text: str) -> list[Any]:
    result = one.filter(Document(text=text, id=""))
    keep, reason = result if isinstance(result, tuple) else (result, "")
    return [bool(keep), reason]


if __name__ == "__main__":
    main()
