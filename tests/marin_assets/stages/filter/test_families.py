"""A document at a threshold is kept, and beyond it rejected, for every reason of every family."""

import dataclasses
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marin_assets.stages.filter import fineweb, gopher_quality, gopher_repetition
from marin_assets.stages.filter.c4 import C4Thresholds, filter_c4
from marin_assets.stages.filter.dclm import quality, repetition
from marin_assets.stages.filter.registry import filter_of_thresholds, named
from marin_assets.stages.filter.repetition import NGrams, duplicates
from marin_assets.stages.filter.spans import complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import Measure
from marin_assets.stages.filter.words import splitter_named
from marin_assets.step.values import unwrap_versioned_value

FAMILIES: list[tuple[str, Any]] = [
    ("gopher_repetition@datatrove", gopher_repetition.MEASURES),
    ("gopher_quality@datatrove", gopher_quality.MEASURES),
    ("fineweb@0.01", fineweb.MEASURES),
    ("dclm_quality@baseline", quality.MEASURES),
    ("dclm_repetition@baseline", repetition.MEASURES),
]
CASES = [(name, measure) for name, measures in FAMILIES for measure in measures]
TEXT = (
    "# The cat, and the dog, have to be with that one...\n- The cat, and the dog, have to be with that one...\n"
    "A line of its own.\n\nThe cat, and the dog, have to be with that one…\n\nA line of its own.\n\nShort\n\nShort"
)


def statistics(text: str, words: str = "fast") -> TextStatistics:
    return TextStatistics(text, splitter_named(words))


def only(name: str, **enabled: Any) -> Any:
    """Return the filter's thresholds with all but `enabled` set to None."""
    thresholds = unwrap_versioned_value(named(name).thresholds)
    disabled = {
        field.name: None
        for field in dataclasses.fields(thresholds)
        if not isinstance(getattr(thresholds, field.name), tuple) and field.name != "short_line_length"
    }
    return dataclasses.replace(thresholds, **{**disabled, **enabled})


@pytest.mark.parametrize(("name", "measure"), CASES, ids=[f"{name}-{measure.name}" for name, measure in CASES])
def test_a_document_at_a_threshold_is_kept_and_beyond_it_rejected(name: str, measure: Measure) -> None:
    measured = statistics(TEXT)
    value = measure.of(measured, only(name))
    assert value > 0
    at = only(name, **{measure.name: value})
    assert filter_of_thresholds(at)(measured, at).keep
    beyond = only(name, **{measure.name: math.nextafter(value, math.inf if measure.is_least else -math.inf)})
    decision = filter_of_thresholds(beyond)(measured, beyond)
    assert not decision.keep
    assert decision.reason == f"{name.partition('@')[0]}_{measure.name}"
    assert decision.value == value


def test_word_statistics_count_words_marks_and_lines() -> None:
    measured = statistics("The cat # sat — on 2 mats, … (1998) The end...\n• item\n  - item …\n\nlast")
    expected = "The cat # sat — on 2 mats , … ( 1998 ) The end ... • item - item … last"
    assert measured.words == expected.split()
    assert measured.word_count == 13, "• is not one of CCNet's symbols"
    assert measured.mean_word_length == 39 / 13
    assert measured.alphabetic_word_ratio == 10 / 22
    assert measured.stop_word_count(("the", "The", "on")) == 2
    assert measured.hash_ratio == 1 / 22
    assert measured.ellipsis_ratio == 3 / 22
    assert measured.bullet_line_ratio == 2 / 5
    assert measured.ellipsis_line_ratio == 2 / 5
    assert measured.terminal_line_ratio == 1 / 4
    assert measured.short_line_ratio(6) == 2 / 4
    assert measured.line_feed_ratio == 4 / 22


def test_repetitions_are_counted_from_the_second_on() -> None:
    assert duplicates(["a", "bb", "a", "bb", "a", "c"]) == (3, 4)
    measured = statistics("one\none\n\none\n\n\ntwo\n\none")
    assert measured.duplicate_lines == (3 / 5, 9 / 23)
    assert measured.duplicate_paragraphs == (1 / 4, 3 / 23)
    assert measured.duplicate_filled_line_characters == 9 / 15


def test_the_top_n_gram_is_the_most_frequent_and_the_first_of_these() -> None:
    text = "a long word a long word again a x a x"
    grams = NGrams(text.split())
    assert grams.top_characters(2) == len("a long") * 2
    assert grams.top_characters(3) == len("a long word") * 2
    assert grams.top_characters(11) == len(text)
    assert grams.top_characters(12) == 0


def test_duplicate_n_grams_do_not_overlap_and_ignore_the_borders_of_words() -> None:
    assert NGrams([*"abcdeabcdef"]).duplicate_characters(5) == 5
    words = ["ab", "c", "d", "e", "f", "x", "a", "bc", "d", "e", "f"]
    assert NGrams(words).duplicate_characters(5) == len("abcdef")
    assert NGrams(["a"] * 100).duplicate_characters(5) == 95
    assert NGrams(["a", "b"]).duplicate_characters(5) == 0


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=60))
def test_counted_n_grams_are_those_that_a_plain_loop_counts(words: list[str]) -> None:
    grams = NGrams(words)
    for n in range(5, 11):
        seen, characters, i = set(), 0, 0
        while i + n <= len(words):
            gram = "".join(words[i : i + n])
            characters += len(gram) if gram in seen else 0
            i += n if gram in seen else 1
            seen.add(gram)
        assert grams.duplicate_characters(n) == characters <= grams.duplicate_characters_bound(n)
    for n in range(2, 5):
        bound = grams.top_characters_bound(n)
        every = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
        assert grams.top_characters(n) == max((every.count(gram) for gram in every), default=0) * len(
            max(every, key=every.count, default="")
        )
        assert grams.top_characters(n) <= bound


def test_n_grams_of_very_many_different_words_are_exact() -> None:
    words = [f"w{i}" for i in range(70_000)] + ["w5", "w6", "w7", "w8"]
    assert NGrams(words).top_characters(4) == len("w5 w6 w7 w8") * 2


def c4(text: str, **changes: Any) -> tuple[str, str]:
    """Return (remaining text, reason)."""
    thresholds = unwrap_versioned_value(named("c4@datatrove", **{"min_sentences": None, **changes}).thresholds)
    decision = filter_c4(statistics(text), thresholds)
    left = "".join(text[a:b] for a, b in complement(list(decision.cut), len(text)))
    assert left == left.strip() or not decision.keep
    return left, decision.reason


KEPT_LINE = "This line is kept."


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("a word of length " + "x" * 1001 + ".", {"max_word_length": None}),
        ("this has no mark at its end", {"line_ends": False}),
        ("this only trails off...", {"line_ends": False}),
        ("Two words.", {"min_words_per_line": None}),
        ("We need JavaScript for this.", {"javascript": False}),
        ("This is our cookie policy.", {"policy": False}),
        ("The use of cookies is odd.", {"policy": False}),
    ],
)
def test_a_line_is_cut_for_each_rule_and_kept_without_it(line: str, change: dict[str, Any]) -> None:
    text = f"{KEPT_LINE}\n{line}\n{KEPT_LINE}"
    assert c4(text) == (f"{KEPT_LINE}\n{KEPT_LINE}", "")
    assert c4(text, **change) == (text, "")


def test_lines_at_their_thresholds_are_kept() -> None:
    text = f"Exactly three words.\n{'x' * 1000} is long."
    assert c4(text) == (text, "")


def test_citations_blanks_and_empty_lines_are_cut() -> None:
    text = (
        "\n  One line [1] of text.[citation needed]  \r\n\r\n\n\tThe next line[edit] is here.\n[2] A third line is it."
    )
    assert c4(text) == ("One line  of text.\nThe next line is here.\n A third line is it.", "")
    assert c4(text.lstrip(), citations=False, line_ends=False)[0].startswith("One line [1] of text.[citation needed]\n")
    assert c4("One line is this.\x0cOne more is this.\u2028And this is one.")[0].count("\x0c") == 1


@pytest.mark.parametrize(
    ("line", "name"), [("Lorem Ipsum it is said.", "lorem_ipsum"), ("Code is like { this.", "curly_bracket")]
)
def test_a_document_with_marks_that_prose_never_has_is_rejected(line: str, name: str) -> None:
    text = f"{KEPT_LINE}\n{line}"
    assert c4(text)[1] == f"c4_{name}"
    assert c4(text, **{name: False}) == (text, "")
    assert c4(f"{KEPT_LINE}\nno end: {line}")[1] == f"c4_{name}"
    assert c4(f"{KEPT_LINE}\n{line} cut")[1] == "", "a line that is cut first is not examined"


def test_sentences_are_counted_after_the_cut() -> None:
    text = f"{KEPT_LINE} {KEPT_LINE}\n{KEPT_LINE} {KEPT_LINE}\nNo. End. Of. This. Line"
    assert c4(f"{text}\n{KEPT_LINE}", min_sentences=5)[1] == ""
    assert c4(text, min_sentences=5)[1] == "c4_min_sentences"


def test_a_document_without_a_line_is_empty_to_fineweb() -> None:
    thresholds = unwrap_versioned_value(named("fineweb@0.01").thresholds)
    for text in ("", " \n\t\n"):
        assert fineweb.filter_fineweb(statistics(text), thresholds).reason == "fineweb_empty"


@pytest.mark.parametrize("words", ["fast", pytest.param("spacy", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n", "\u2028\x0c", "日本語のテキスト。", "🙂" * 20, "é" * 60, "x" * 5_000_000, "word " * 1_000_000],
    ids=["empty", "blank", "lines", "separators", "japanese", "emoji", "accents", "one long line", "one word"],
)
def test_every_text_is_filtered_in_bounded_time(text: str, words: str) -> None:
    began = time.monotonic()
    for name, _ in [*FAMILIES, ("c4@datatrove", None)]:
        thresholds = unwrap_versioned_value(named(name).thresholds)
        decision = filter_of_thresholds(thresholds)(statistics(text, words), thresholds)
        assert decision.keep == (decision.reason == "")
        assert decision.value is None or math.isfinite(decision.value)
    every = only("gopher_repetition@datatrove", **{m.name: 1e9 for m in gopher_repetition.MEASURES})
    assert filter_of_thresholds(every)(statistics(text, words), every).keep
    assert time.monotonic() - began < 60


def test_all_rules_of_c4_can_be_disabled() -> None:
    fields = {field.name: None for field in dataclasses.fields(C4Thresholds)}
    assert filter_c4(statistics("a\nb { lorem ipsum"), C4Thresholds(**fields)).keep  # type: ignore[arg-type]
