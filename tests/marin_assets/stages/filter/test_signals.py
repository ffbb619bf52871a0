"""RedPajama's signals: the values of RedPajama's own code, in the rows of filters and statistics."""

import hashlib
import json
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from golden_texts import golden_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets import Step, versioned
from marin_assets.documents import Document, list_shards, read_rows, write_documents
from marin_assets.stages.filter.filter_documents import FilterDocumentsConfig, decision_rule_of, filter_documents
from marin_assets.stages.filter.registry import named
from marin_assets.stages.filter.signals.redpajama import DOCUMENT_SIGNALS, LINE_MEANS, LINE_SIGNALS
from marin_assets.stages.filter.signals.redpajama_text import RedPajamaText
from marin_assets.stages.filter.signals.registry import SIGNALS, SignalError, measure_of
from marin_assets.stages.filter.signals.repeats import repeats_of
from marin_assets.stages.filter.text_statistics import TextStatisticsConfig, text_statistics
from marin_assets.step.graph import build_graph
from marin_assets.step.values import ConfigError, unwrap_versioned_value
from marin_resources.storage.files import read_json

GOLDEN = json.loads(Path(__file__).with_name("golden_signals.json").read_text())
STRANGE = [
    "",
    " ",
    "\n\n",
    "...\n\u0301.\nA",
    "Lorem, Ipsum — lorem ipsum {}\n• JavaScript javascript\r\n– Ⓐ ² ٣ Ⅷ ΣΑΣ. İ\u2028e\u0301 字!\ud800?",
    "x y " * 12 + "z\n" + "1 a_1 _ #" * 3,
]
"""Beside generated texts; the last is repetition alone."""
TEXT = "The cat sat.\n\n• 2 CATS sat…\n{javascript} the cat sat"


def signal_texts() -> list[str]:
    return [*STRANGE, *golden_texts()[:18]]


def measured(text: str, *names: str) -> dict[str, Any]:
    return measure_of(names or ["redpajama"])(RedPajamaText(text))


def corpus(folder: Path, *texts: str) -> str:
    documents = [Document(id=str(i), text=text) for i, text in enumerate(texts)]
    write_documents(f"{folder}/documents/a.jsonl.zst", documents)
    return f"{folder}/documents"


def rows_of(folder: str) -> list[dict[str, Any]]:
    return [row for path in list_shards(folder) for _, row in read_rows(path) if isinstance(row, dict)]


def version_of(**changes: Any) -> str:
    step = Step(name="attributes/x", fn=filter_documents, config=FilterDocumentsConfig(documents_path="/d", **changes))
    return build_graph([step])[step].version.text


def test_every_value_is_redpajamas() -> None:
    """`tests/benchmarks/sides/signals_redpajama.py` recorded them, from the texts as lines of JSON."""
    texts = signal_texts()
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    assert digest == GOLDEN["texts_sha256"], "other texts than those of the values"
    for text, expected in zip(texts, GOLDEN["values"], strict=True):
        assert measured(text, *DOCUMENT_SIGNALS, *LINE_SIGNALS) == expected, text[:80]


def test_signals_of_a_short_text_can_be_counted_by_hand() -> None:
    values = measured(TEXT)
    assert values["rps_doc_word_count"] == 11  # the cat sat • 2 cats sat… javascript the cat sat
    assert values["rps_doc_num_sentences"] == 2
    assert values["rps_doc_frac_all_caps_words"] == round(1 / 15, 8)
    assert values["rps_lines_num_words"] == [3, 0, 4, 4]
    assert values["rps_lines_ending_with_terminal_punctution_mark"] == [1, 0, 0, 0]
    assert values["rps_lines_start_with_bulletpoint"] == [0, 0, 1, 0]
    assert values["rps_lines_javascript_counts"] == [0, 0, 0, 1]
    assert values["rps_lines_numerical_chars_fraction"] == [0, 0, round(1 / 13, 8), 0]
    assert values["rps_lines_uppercase_letter_fraction"] == [round(1 / 13, 8), 0, round(4 / 14, 8), 0]
    assert values["rps_lines_num_words_mean"] == 11 / 4
    assert values["rps_doc_frac_chars_top_3gram"] == round(2 * 9 / 38, 8)
    assert values["rps_doc_curly_bracket"] == round(2 / len(TEXT), 8)


def test_a_ratio_without_a_denominator_is_none() -> None:
    empty = measured("")
    assert empty["rps_doc_mean_word_length"] is empty["rps_lines_num_words_mean"] is None
    assert empty["rps_doc_stop_word_fraction"] == empty["rps_doc_frac_chars_dupe_5grams"] == 0
    assert empty["rps_lines_num_words"] == []


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["a", "b", "ab", "c"]), max_size=60))
def test_repeats_are_those_of_counting_every_n_gram(words: list[str]) -> None:
    repeats = repeats_of(words, list(map(len, words)), Counter(words), range(2, 5), range(5, 11))
    for n in range(2, 11):
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        counts = Counter(grams)
        if n < 5:
            gram, most = counts.most_common(1)[0] if counts else ((), 0)
            assert repeats.top.get(n, 0) == (len("".join(gram)) * most if most > 1 else 0)
        else:
            covered = {i + k for i, gram in enumerate(grams) if counts[gram] > 1 for k in range(n)}
            assert repeats.covered.get(n, 0) == sum(len(words[i]) for i in covered)


@pytest.mark.long
def test_in_any_form_a_character_is_numeric_and_whitespace_alike() -> None:
    """The numbers of lines are counted in the text itself, and RedPajama counts in its form NFD in lower case."""
    for character in map(chr, range(0x110000)):
        normalized = unicodedata.normalize("NFD", character.lower())
        if normalized != character:
            assert sum(map(str.isnumeric, normalized)) == character.isnumeric()
            assert any(map(str.isspace, normalized)) == character.isspace()
            assert "\n" not in normalized


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    ["x" * 5_000_000, "word " * 1_000_000, "a b c d e f g h i j k " * 100_000, "\n" * 1_000_000, "字é" * 1_000_000],
    ids=["one long line", "one word", "one phrase", "empty lines", "not ASCII"],
)
def test_every_text_is_measured_in_bounded_time(text: str) -> None:
    began = time.monotonic()
    assert len(measured(text)) == len(SIGNALS)
    assert time.monotonic() - began < 60


def test_every_row_has_the_signals_of_the_whole_text_also_of_rejected_and_cut_documents(tmp_path: Path) -> None:
    texts = ["Short.", "Home\n" + "This is a sentence of the house. " * 20, ""]
    filters = [named("c4@datatrove", min_sentences=1), named("gopher_quality@datatrove")]
    config = FilterDocumentsConfig(
        documents_path=corpus(tmp_path, *texts),
        output_path=f"{tmp_path}/out",
        filters=filters,
        words="fast",
        signals=["redpajama"],
    )
    counts = filter_documents(unwrap_versioned_value(config))
    assert (counts["kept"], counts["rejected"], counts["documents_cut"]) == (1, 2, 1)
    rows = rows_of(f"{tmp_path}/out")
    for row, text in zip(rows, texts, strict=True):
        assert {name: row[name] for name in SIGNALS} == measured(text)
    without = FilterDocumentsConfig(documents_path="", output_path="", filters=filters, words="fast")
    decide = decision_rule_of(unwrap_versioned_value(without))
    assert [row["reason"] for row in rows] == [decide(Document(id="", text=text)).reason for text in texts]


def test_signals_alone_keep_every_document_and_load_no_splitter(tmp_path: Path) -> None:
    config = FilterDocumentsConfig(
        documents_path=corpus(tmp_path, TEXT, ""),
        output_path=f"{tmp_path}/out",
        filters=(),
        signals=("rps_doc_word_count", "redpajama_numbers", "rps_doc_word_count"),
    )
    assert filter_documents(unwrap_versioned_value(config)) == {"documents": 2, "kept": 2, "rejected": 0}
    [row, _] = rows_of(f"{tmp_path}/out")
    assert list(row)[:5] == ["id", "keep", "reason", "value", "rps_doc_word_count"]
    assert set(row) == {"id", "keep", "reason", "value", *DOCUMENT_SIGNALS, *LINE_MEANS}


def test_statistics_have_signals_and_quantiles_of_those_that_are_numbers(tmp_path: Path) -> None:
    config = TextStatisticsConfig(
        documents_path=corpus(tmp_path, TEXT, "", "One two."),
        output_path=f"{tmp_path}/out",
        words="fast",
        signals=("rps_doc_mean_word_length", "rps_lines_num_words", "rps_lines_num_words_mean"),
    )
    result = text_statistics(unwrap_versioned_value(config))
    assert result["median_rps_lines_num_words_mean"] in (2, 2.75)
    assert [row["rps_lines_num_words"] for row in rows_of(f"{tmp_path}/out")] == [[3, 0, 4, 4], [], [2]]
    quantiles = read_json(f"{tmp_path}/out/quantiles.json")
    assert quantiles["rps_doc_mean_word_length"][0] == 3
    assert "rps_lines_num_words" not in quantiles


def test_signals_are_in_the_version_and_their_absence_is_not() -> None:
    assert "signals" not in version_of()
    assert '"signals": ["redpajama"]' in version_of(signals=("redpajama",))
    assert version_of(signals=["redpajama"]) == version_of(signals=versioned(("redpajama",)))
    assert version_of(signals=["rps_doc_word_count"]) != version_of(signals=["redpajama"])


def test_an_unknown_signal_is_one_sentence_when_the_step_is_made(tmp_path: Path) -> None:
    with pytest.raises(SignalError, match=r"Step 'attributes/x': A signal is 'redpajma', .* Did you mean 'redpajama'"):
        version_of(signals=["redpajma"])
    with pytest.raises(ConfigError, match=r"signals is 'redpajama', a str, expected Sequence"):
        version_of(signals="redpajama")
    with pytest.raises(SignalError, match=r"The signals are 'redpajama', expected a list"):
        measure_of("redpajama")
    with pytest.raises(
        SignalError, match=r"Step 'x': A signal is 'rps', expected one of 35 names, such as 'redpajama'"
    ):
        Step(name="x", fn=text_statistics, config=TextStatisticsConfig(documents_path="/d", signals=["rps"]))


def test_the_filter_of_a_signal_rejects_beyond_its_bounds(tmp_path: Path) -> None:
    def reason(text: str, **bounds: float | None) -> str:
        config = FilterDocumentsConfig(
            documents_path="", output_path="", filters=[named("redpajama@gopher", **bounds)], words="fast"
        )
        return decision_rule_of(unwrap_versioned_value(config))(Document(id="", text=text)).reason

    prose = " ".join(f"word{i} and number{i} then" for i in range(20))
    assert reason(prose) == ""
    assert reason(TEXT) == "redpajama_min_rps_doc_word_count"
    assert reason(prose, max_rps_doc_word_count=70) == "redpajama_max_rps_doc_word_count"
    assert reason("\n".join(["• one more item of the list"] * 20), max_rps_doc_frac_chars_top_2gram=None) == (
        "redpajama_max_rps_lines_start_with_bulletpoint_mean"
    )
    assert reason("", min_rps_doc_word_count=None) == "redpajama_min_rps_doc_mean_word_length"
