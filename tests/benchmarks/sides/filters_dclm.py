"""DCLM's side of `dclm_filters.py`, run by a Python with its packages: a checkout, texts as JSON lines, a task.

decisions   each group of DCLM's mappers asked alone of every text: [keep, text after it]
seconds    all of them in the order of dclm_baseline_refinedweb.yaml, each on what the one before leaves
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

KEY = "previous_word_count"
UNUSED = ("transformers", "justext", "bs4", "lxml", "lxml.etree", "blingfire")
"""Modules that DCLM's imports for mappers that are not asked."""


def main() -> None:
    checkout, texts_path, task = sys.argv[1:4]
    texts = [json.loads(line) for line in Path(texts_path).read_text().splitlines()]
    groups = mappers(Path(checkout))
    if task == "seconds":
        print(json.dumps(seconds(groups, texts)))
        return
    with Path(sys.argv[4]).open("w") as out:
        for text in texts:
            out.write(json.dumps({name: decision(group, text) for name, group in groups.items()}) + "\n")
    print(json.dumps(len(texts)))


def mappers(checkout: Path) -> dict[str, list[Any]]:
    """The mappers of each family, with the values of dclm_baseline_refinedweb.yaml."""
    os.chdir(checkout)
    sys.path[:0] = [str(checkout), str(checkout / "baselines")]
    for name in ("core", "baselines", "baselines.core", "baselines.mappers", "baselines.mappers.enrichers"):
        package = types.ModuleType(name)  # their __init__ would import models, sentences and buckets
        package.__path__ = [str(checkout.joinpath("baselines", *name.removeprefix("baselines").split(".")))]
        sys.modules[name] = package
    for name in UNUSED:
        unused: Any = types.ModuleType(name)
        unused.AutoTokenizer = unused.BeautifulSoup = unused.ParserError = None
        sys.modules[name] = unused
    from baselines.mappers import modifiers as m
    from baselines.mappers.enrichers import enrichers as e
    from baselines.mappers.filters import content_filters as f

    def given(mapper: Any, **values: Any) -> Any:
        return lambda page: mapper(page, **values)

    return {
        "dclm_text": [m.url_removal_modifier(), m.newline_removal_modifier(max_consecutive=2)],
        "dclm_quality": [
            given(f.page_length_filter, length_type="word", min_length=50, max_length=100000, ignore_punctuation=True),
            given(f.word_length_filter, min_length=3, max_length=10),
            given(f.symbol_ratio_filter, max_symbol_to_word_ratio=0.1),
            given(f.bullet_count_filter, max_bullet_start_ratio=0.9),
            given(f.ellipsis_count_filter, max_ellipsis_end_ratio=0.3),
            given(f.alphabetic_word_ratio_filter, max_ratio=0.2),
            given(f.stop_word_filter, count_unique=False, min_stop_word=2),
        ],
        "dclm_repetition": [f.massive_web_repetition_filters],
        "dclm_lines": [
            given(e.word_counter_enricher, key=KEY),
            given(m.uppercase_ratio_line_modifier, max_ratio=0.5),
            given(m.numeric_ratio_line_modifier, max_ratio=0.999999),
            m.counter_line_modifier(),
            given(m.line_length_modifier, min_length=2),
            m.substring_line_modifier("items in cart", max_length=10, remove_substring_only=True),
            m.substring_line_modifier("Read more...", location="suffix", max_length=10, remove_substring_only=True),
            m.substring_line_modifier("Sign-in", location="prefix", max_length=10, remove_substring_only=True),
            given(f.word_removal_ratio_filter, prev_word_count_key=KEY, max_removed_ratio=0.05),
        ],
    }


def seconds(groups: dict[str, list[Any]], texts: list[str]) -> float:
    """Of this process on its core, for the chain over all texts."""
    chain = [mapper for group in groups.values() for mapper in group]
    decide(chain, "Some words. " * 100)
    began = time.process_time()
    for text in texts:
        decide(chain, text)
    return time.process_time() - began


def decide(mappers_in_order: list[Any], text: str) -> Any:
    """The page after the mappers, or None."""
    page: Any = {"text": text}
    for mapper in mappers_in_order:
        pages = mapper(page)
        if not pages:
            return None
        [page] = pages
    return page


def decision(group: list[Any], text: str) -> list[Any]:
    page = decide(group, text)
    return [page is not None, page["text"] if page is not None and page["text"] != text else None]


if __name__ == "__main__":
    main()
