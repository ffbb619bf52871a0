import dataclasses
import importlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from golden_texts import golden_texts

from marin_assets import Step
from marin_assets.documents import Document, write_documents
from marin_assets.documents.attributes import read_attributes
from marin_assets.documents.languages.fineweb2 import fineweb2_languages
from marin_assets.stages.filter.c4 import filter_c4
from marin_assets.stages.filter.filter_documents import (
    FilterDocumentsConfig,
    decision_rule_of,
    filter_documents,
    filter_text,
)
from marin_assets.stages.filter.registry import (
    FINEWEB,
    FilterError,
    filter_names,
    fineweb2_filters,
    fineweb_filters,
    named,
)
from marin_assets.stages.filter.spans import complement
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.words import SplitterError, splitter_named
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value, versioned

SENTENCES = [f"This is the sentence of the {color} house." for color in ("red", "blue", "green", "white", "black")]
PROSE = "\n".join(" ".join(SENTENCES[i:] + SENTENCES[:i]) for i in range(3))


def corpus(folder: Path, texts: Sequence[str], shards: int = 3) -> str:
    path = f"{folder}/documents"
    for shard in range(shards):
        rows = [Document(id=f"doc-{i}", text=texts[i]) for i in range(shard, len(texts), shards)]
        write_documents(f"{path}/part-{shard:05d}-of-{shards:05d}.jsonl.zst", rows)
    return path


def config(documents: str, output: Path, **changes: Any) -> FilterDocumentsConfig:
    built = FilterDocumentsConfig(documents_path=documents, output_path=str(output), **changes)
    return unwrap_versioned_value(built)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.zst")}


def version_of(**changes: Any) -> str:
    step = Step(name="attributes/x", fn=filter_documents, config=FilterDocumentsConfig(documents_path="/d", **changes))
    return build_graph([step])[step].version.text


def test_every_document_is_kept_or_rejected_for_one_reason(tmp_path: Path) -> None:
    texts = golden_texts()
    result = filter_documents(config(corpus(tmp_path, texts), tmp_path / "out"))
    assert result["documents"] == len(texts) == result["kept"] + result["rejected"]
    assert result["rejected"] == sum(count for name, count in result.items() if name.startswith("rejected_"))
    assert 0 < result["kept"] < len(texts)
    rows = [row for path in sorted((tmp_path / "out").glob("*.zst")) for row in read_attributes(str(path))]
    assert [id for id, _ in rows] == [f"doc-{i}" for shard in range(3) for i in range(shard, len(texts), 3)]
    for _, decision in rows:
        assert decision.keep == (decision.reason == "") == (decision.value is None)


@pytest.mark.long
def test_decisions_are_the_same_bytes_on_ray_and_in_process(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    documents = corpus(tmp_path, golden_texts()[:60])
    here = filter_documents(config(documents, tmp_path / "here"))
    request.getfixturevalue("shared_ray")
    there = filter_documents(config(documents, tmp_path / "there"))
    assert here == there
    assert written(tmp_path / "here") == written(tmp_path / "there")


def test_a_filter_decides_about_what_the_one_before_leaves(tmp_path: Path) -> None:
    text = f"Home\n{PROSE}\n\nMenu"
    filters = [named("c4@datatrove", min_sentences=1), named("fineweb@0.01", char_dup_ratio=None, list_ratio=0.03)]
    decide = decision_rule_of(config("", tmp_path, filters=filters))
    decision = decide(Document(id="", text=text))
    assert decision.keep
    assert decision.cut == ((0, 5), (5 + len(PROSE), len(text)))
    assert decision_rule_of(config("", tmp_path, filters=filters[::-1]))(Document(id="", text=text)).reason == (
        "fineweb_list_ratio"
    )


def test_cuts_of_cuts_are_spans_of_the_document() -> None:
    text = "First cookie policy line.\n [1] Second line goes [2] here.\n\nA third javascript line.\nAnd four it is."
    lax = {"min_sentences": None}
    specs = [
        named("c4@fineweb", policy=False, citations=False, **lax),
        named("c4@fineweb", javascript=False, **lax),
    ]
    thresholds = [unwrap_versioned_value(spec.thresholds) for spec in specs]
    statistics = TextStatistics(text, splitter_named("fast"))
    both = filter_text(statistics, [(filter_c4, one) for one in thresholds])
    left = "".join(text[a:b] for a, b in complement(list(both.cut), len(text)))
    assert left == "Second line goes  here.\nAnd four it is."


@pytest.mark.parametrize("words", ["fast", "spacy"])
def test_fineweb_keeps_prose_and_rejects_lists(words: str, tmp_path: Path) -> None:
    decide = decision_rule_of(config("", tmp_path, words=words, filters=[*fineweb_filters()[1:]]))
    assert decide(Document(id="", text=PROSE)).keep
    assert decide(
        Document(id="", text="\n".join(f"- something that the store sells to people {i}" for i in range(60)))
    ).reason == ("gopher_quality_max_bullet_line_ratio")


def test_the_values_of_thresholds_are_in_the_version_and_their_name_is_not() -> None:
    default = version_of()
    assert default == version_of(filters=[named(name) for name in FINEWEB])
    assert '"dup_10_gram": 0.1' in default
    assert "gopher_repetition@datatrove" not in default
    changed = [*fineweb_filters()[:3], named("fineweb@0.01", char_dup_ratio=0.05)]
    assert '"char_dup_ratio": 0.05' in version_of(filters=changed)
    renamed = [dataclasses.replace(spec, name="ours") for spec in fineweb_filters()]
    assert version_of(filters=renamed) == default
    assert version_of(filters=fineweb_filters()[::-1]) != default
    assert version_of(words=versioned("fast")) != default


OPTIONS = "With -a --all the program lists all files that begin with a dot and -q --quiet hides the rest. " * 4
OPTIONEN = "Mit -a --alle zeigt the command of the shell alle Dateien and -q --still keine. " * 5
LIST = "これは、説明、です、と、思います。\n" * 20


@pytest.mark.parametrize(
    ("text", "name", "reason", "reason_of_fast"),
    [
        (OPTIONS, "gopher_quality@datatrove", "", "gopher_quality_min_alphabetic_word_ratio"),
        (OPTIONEN, "gopher_quality@datatrove", "", "gopher_quality_min_alphabetic_word_ratio"),
        (LIST, "fineweb@0.01", "fineweb_list_ratio", ""),
    ],
    ids=["English options", "German options", "Japanese list"],
)
def test_by_default_mixed_texts_are_filtered_as_by_datatrove(
    text: str, name: str, reason: str, reason_of_fast: str, tmp_path: Path
) -> None:
    lenient = {"char_dup_ratio": None, "short_line_ratio": None} if name.startswith("fineweb") else {}
    filters = [named(name, **lenient)]
    for changes, expected in (({}, reason), ({"words": "fast"}, reason_of_fast)):
        decide = decision_rule_of(config("", tmp_path, filters=filters, **changes))
        assert decide(Document(id="0", text=text)).reason == expected


@pytest.mark.parametrize("name", [name for name in filter_names() if "@fineweb2-" not in name])
def test_every_named_set_has_all_thresholds_and_a_source(name: str) -> None:
    family, _, set_name = name.partition("@")
    assert named(name).name == name
    sets = json.loads(files("marin_assets.stages.filter").joinpath("thresholds", f"{family}.json").read_text())
    assert len(sets[set_name]["source"]) > 20


def test_fineweb2_has_a_set_of_each_family_for_each_language() -> None:
    specs = {tag: fineweb2_filters(tag) for tag in fineweb2_languages()}
    assert len(specs) > 200
    repetition, fineweb, gopher = (spec.thresholds.value for spec in specs["deu_Latn"])
    assert (repetition.dup_line_frac, repetition.top_2_gram, repetition.dup_10_gram) == (0.263, 0.169, 0.098)
    assert repetition.dup_para_frac is repetition.dup_line_char_frac is fineweb.short_line_ratio is None
    assert (fineweb.list_ratio, fineweb.char_dup_ratio, fineweb.line_punct_ratio) == (0.152, 0.1, 0)
    assert (gopher.max_mean_word_length, gopher.min_alphabetic_word_ratio, gopher.min_words) == (15, 0.774, 50)
    assert {"der", "und", "die"} <= set(gopher.stop_words)
    with pytest.raises(FilterError, match=r"'gopher_repetition@fineweb2-deu', expected .* Did you mean '.*deu_Latn'"):
        fineweb2_filters("deu")


@pytest.mark.parametrize("language", ["de", "ru", "ja", "hi"])
def test_text_of_a_language_is_kept_by_its_own_set_and_not_by_that_for_english(tmp_path: Path, language: str) -> None:
    tag = {"de": "deu_Latn", "ru": "rus_Cyrl", "ja": "jpn_Jpan", "hi": "hin_Deva"}[language]
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    text = "\n\n".join(" ".join(sentences[i:] + sentences[:i]) for i in range(2))
    gopher = fineweb2_filters(tag)[2]
    reasons = [
        decision_rule_of(config("", tmp_path, filters=[spec], words="script"))(Document(id="0", text=text)).reason
        for spec in (gopher, named("gopher_quality@datatrove"))
    ]
    assert reasons[0] == ""
    assert reasons[1] != ""


def test_an_unknown_filter_threshold_language_or_splitter_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        FilterError, match=r"'fineweb@2', expected one of \d+ names. Did you mean 'fineweb@0.1' or 'fineweb@0.01'"
    ):
        named("fineweb@2")
    with pytest.raises(FilterError, match="'nonsense'"):
        named("nonsense")
    with pytest.raises(FilterError, match=r"'fineweb@0.01' has no threshold 'dup', expected one of 'line_punct_ratio'"):
        named("fineweb@0.01", dup=1)
    with pytest.raises(FilterError, match=r"'char_dup_ratio' of 'fineweb@0.01' is '0.1', expected a number"):
        named("fineweb@0.01", char_dup_ratio="0.1")
    with pytest.raises(FilterError, match="no filter"):
        filter_documents(config("/none", tmp_path, filters=[]))
    with pytest.raises(SplitterError, match="language of the words is 'german', expected one of"):
        filter_documents(config("/none", tmp_path, language="german"))
    with pytest.raises(FilterError, match=r"is for deu_Latn, and the words are english. Set language='deu_Latn'"):
        decision_rule_of(config("", tmp_path, filters=fineweb2_filters("deu_Latn")))
    with pytest.raises(SplitterError, match="'nltk'"):
        filter_documents(config("/none", tmp_path, words="nltk"))
