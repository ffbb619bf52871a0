"""Thresholds and stop words that FineWeb-2 published for each language (Penedo et al. 2025, arXiv:2506.20920).

`fineweb2.json` has them from the configs of github.com/huggingface/fineweb-2 (Apache 2.0), for the languages that
fastText's model of 176 languages knows, in each script. The scores of languages are those of GlotLID v3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from marin_assets.documents.languages.tags import LanguageTagError, language_of
from marin_resources.types.near_names import expected_one_of


@cache
def fineweb2_languages() -> dict[str, dict[str, Any]]:
    """Tag -> its thresholds and stop words."""
    text = files("marin_assets.documents.languages").joinpath("fineweb2.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def fineweb2_scores(languages: Iterable[str] = ()) -> dict[str, float]:
    """FineWeb-2's least score of GlotLID for each language, by its tag; of all languages by default.

    A language without a script has the scores of all scripts. Raises LanguageTagError for one that is not listed.
    """
    table = fineweb2_languages()
    names = list(languages)
    scores: dict[str, float] = {}
    for name in names:
        tags = [tag for tag in table if language_of(name).has(tag)]
        if not tags:
            raise LanguageTagError(f"FineWeb-2's table has no language {name!r}, {expected_one_of(name, table)}")
        scores |= {tag: table[tag]["language_score"] for tag in tags}
    return scores if names else {tag: row["language_score"] for tag, row in table.items()}
