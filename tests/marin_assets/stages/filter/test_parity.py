"""The decisions equal those of datatrove 0.9.0, on texts that any machine can generate."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from golden_texts import golden_texts

from marin_assets.stages.filter.registry import filter_of_thresholds, named
from marin_assets.stages.filter.spans import complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

GOLDEN = json.loads(Path(__file__).with_name("golden_decisions.json").read_text())
FILTERS = {
    "gopher_repetition": "gopher_repetition@datatrove",
    "gopher_quality": "gopher_quality@datatrove",
    "c4": "c4@fineweb",
    "c4_strict": "c4@datatrove",
    "fineweb": "fineweb@0.01",
}
REASONS = {
    "": "",
    "gopher_short_doc": "gopher_quality_min_words",
    "gopher_below_avg_threshold": "gopher_quality_min_mean_word_length",
    "gopher_above_avg_threshold": "gopher_quality_max_mean_word_length",
    "gopher_too_many_hashes": "gopher_quality_max_hash_ratio",
    "gopher_too_many_ellipsis": "gopher_quality_max_ellipsis_ratio",
    "gopher_too_many_bullets": "gopher_quality_max_bullet_line_ratio",
    "gopher_too_many_end_ellipsis": "gopher_quality_max_ellipsis_line_ratio",
    "gopher_below_alpha_threshold": "gopher_quality_min_alphabetic_word_ratio",
    "gopher_enough_stop_words": "gopher_quality_min_stop_words",
    "too_few_sentences": "c4_min_sentences",
    "curly_bracket": "c4_curly_bracket",
    "lorem_ipsum": "c4_lorem_ipsum",
    "line_punct_ratio": "fineweb_line_punct_ratio",
    "short_line_ratio": "fineweb_short_line_ratio",
    "char_dup_ratio": "fineweb_char_dup_ratio",
    "list_ratio": "fineweb_list_ratio",
    **{f"top_{n}_gram": f"gopher_repetition_top_{n}_gram" for n in range(2, 5)},
    **{f"duplicated_{n}_n_grams": f"gopher_repetition_dup_{n}_gram" for n in range(5, 11)},
    **{name: f"gopher_repetition_{name}" for name in ("dup_para_frac", "dup_para_char_frac")},
    **{name: f"gopher_repetition_{name}" for name in ("dup_line_frac", "dup_line_char_frac")},
}
"""datatrove's names for our thresholds."""


@pytest.fixture(scope="module")
def texts() -> list[str]:
    generated = golden_texts()
    assert hashlib.sha256("\0".join(generated).encode()).hexdigest() == GOLDEN["texts_sha256"], (
        "other texts than those of the decisions"
    )
    return generated


@pytest.mark.parametrize("name", FILTERS)
def test_every_decision_reason_and_cut_is_datatroves(name: str, texts: list[str]) -> None:
    thresholds = unwrap_versioned_value(named(FILTERS[name]).thresholds)
    decide = filter_of_thresholds(thresholds)
    found: list[Any] = []
    for text in texts:
        decision = decide(TextStatistics(text, splitter_named("spacy")), thresholds)
        left = "".join(text[a:b] for a, b in complement(list(decision.cut), len(text)))
        found.append((decision.keep, decision.reason, zlib.crc32(left.encode()) if decision.cut else None))
    expected = [(keep, REASONS[reason], text) for keep, reason, text in GOLDEN["decisions"][name]]
    different = [(i, a, b) for i, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b]
    assert different == []


@pytest.mark.parametrize("name", FILTERS)
def test_fast_words_rarely_change_a_decision(name: str, texts: list[str]) -> None:
    thresholds = unwrap_versioned_value(named(FILTERS[name]).thresholds)
    decide = filter_of_thresholds(thresholds)
    kept = [decide(TextStatistics(text, splitter_named("fast")), thresholds).keep for text in texts]
    same = sum(a == b[0] for a, b in zip(kept, GOLDEN["decisions"][name], strict=True))
    assert same >= 0.9 * len(texts)
