"""Applied attributes: every document is kept or has one reason, every byte is accounted for, mismatches are errors."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from decided import RULES, Corpus, by_case, data_below, without_first_line, without_quotes
from hypothesis import given
from hypothesis import strategies as st

from marin_assets import Step, output_path_of, versioned
from marin_assets.documents import (
    FORMATS,
    Document,
    DocumentError,
    list_shards,
    read_documents,
    shard_name,
    write_documents,
    write_rows,
)
from marin_assets.documents.attributes import Decision, write_decisions
from marin_assets.stages.consolidate.consolidate import (
    Applied,
    ConsolidateConfig,
    ConsolidateError,
    consolidate,
    union,
    without,
)
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.graph import build_graph
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError


def test_the_first_attribute_that_rejects_decides_and_everything_is_accounted_for(
    corpus: Corpus, documents: list[Document]
) -> None:
    result = corpus.consolidate("length", "case", "lines", "quotes")
    expected: Counter[str] = Counter()
    texts = {}
    for d in documents:
        decisions = [RULES[name](d) for name in ("length", "case")]
        names = [f"{n}/{v.reason}" for n, v in zip(("length", "case"), decisions, strict=True) if not v.keep]
        cut = {i for decide in (without_first_line, without_quotes) for a, b in decide(d).cut for i in range(a, b)}
        left = "".join(c for i, c in enumerate(d.text) if i not in cut)
        if names:
            expected[names[0]] += 1
        elif not left.strip():
            first = without(d.text, union(without_first_line(d).cut))
            expected["quotes/empty_after_cut" if first.strip() else "lines/empty_after_cut"] += 1
        else:
            texts[d.id] = left
    assert {d.id: d.text for d in corpus.kept()} == texts
    reasons = {k.removeprefix("rejected_"): v for k, v in result.items() if k.startswith("rejected_")}
    assert reasons == expected
    assert {"length/too_short", "lines/empty_after_cut"} <= set(reasons)
    assert result["documents"] == len(documents) == result["kept"] + result["rejected"]
    assert result["rejected"] == sum(expected.values())
    assert result["kept_share"] == len(texts) / len(documents)
    assert result["bytes_in"] == sum(len(d.text.encode()) for d in documents)
    assert result["bytes_kept"] == sum(len(text.encode()) for text in texts.values())
    assert result["bytes_in"] == result["bytes_kept"] + result["bytes_rejected"] + result["bytes_cut"]
    assert (result["documents_unaccounted"], result["bytes_unaccounted"]) == (0, 0)


def test_kept_documents_keep_their_shard_order_source_and_metadata(corpus: Corpus, documents: list[Document]) -> None:
    corpus.consolidate("case")
    names = [path.rpartition("/")[2] for path in list_shards(f"{corpus.folder}/out")]
    assert names == [shard_name(i, 3) for i in range(3)]
    for i, path in enumerate(list_shards(f"{corpus.folder}/out")):
        assert list(read_documents(path)) == [d for d in documents[i::3] if by_case(d).keep]


def test_without_attributes_every_document_is_kept(small: Corpus) -> None:
    assert small.consolidate()["kept"] == 6
    assert small.json("waterfall")["steps"] == small.json("rejected")["rejected"] == []


def test_the_waterfall_has_the_documents_each_attribute_removed_and_adds_up(corpus: Corpus) -> None:
    result = corpus.consolidate("length", "case", "lines", "quotes")
    waterfall = corpus.json("waterfall")
    assert waterfall["format_version"] == 1
    assert [a["name"] for a in waterfall["attributes"]] == ["length", "case", "lines", "quotes"]
    for what in ("documents", "bytes"):
        gone = sum(step[what] for step in waterfall["steps"])
        assert waterfall[what] == gone + waterfall["kept"][what]
        assert waterfall["steps"][-1][f"{what}_left"] == waterfall["kept"][what]
        left = waterfall[what]
        for attribute in waterfall["attributes"]:
            steps = [step for step in waterfall["steps"] if step["attribute"] == attribute["name"]]
            assert attribute[what] == sum(step[what] for step in steps)
            left -= attribute[what]
            assert attribute[f"{what}_left"] == left
    cuts = [step for step in waterfall["steps"] if step["kind"] == "cut"]
    assert [step["attribute"] for step in cuts] == ["lines", "quotes"]
    assert sum(step["bytes"] for step in cuts) == result["bytes_cut"] > 0
    assert waterfall["kept"] == {"documents": result["kept"], "bytes": result["bytes_kept"]}
    steps = {f"{s['attribute']}/{s['reason']}": s for s in waterfall["steps"]}
    assert result["by_reason"] == {name: {u: s[u] for u in ("documents", "bytes")} for name, s in steps.items()}


def test_with_a_tokenizer_tokens_are_counted_beside_bytes(corpus: Corpus, documents: list[Document]) -> None:
    from tokenizers import Tokenizer

    path = f"{corpus.folder}/tokenizer"
    config = TrainTokenizerConfig(documents_path=f"{corpus.folder}/documents", output_path=path, vocab_size=400)
    train_tokenizer(unwrap_versioned_value(config))
    tokenizer = Tokenizer.from_file(f"{path}/tokenizer.json")

    def tokens(found: list[Document]) -> int:
        return sum(len(tokenizer.encode(d.text, add_special_tokens=False).ids) for d in found)

    result = corpus.consolidate("length", "lines", "quotes", tokenizer_path=path)
    waterfall = corpus.json("waterfall")
    assert result["tokens_in"] == waterfall["tokens"] == tokens(documents)
    assert result["tokens_kept"] == waterfall["kept"]["tokens"] == tokens(corpus.kept())
    assert sum(step["tokens"] for step in waterfall["steps"]) == result["tokens_rejected"] + result["tokens_cut"]
    assert waterfall["steps"][-1]["tokens_left"] == result["tokens_kept"]
    short = [d for d in documents if len(d.text) < 80]
    size = sum(len(d.text.encode()) for d in short)
    assert result["by_reason"]["length/too_short"] == {"documents": len(short), "bytes": size, "tokens": tokens(short)}


def test_a_threshold_decides_in_place_of_the_stage(corpus: Corpus, documents: list[Document]) -> None:
    path = f"{corpus.folder}/length"
    stricter = corpus.apply(Applied(name="length", path=path, at_least=200, at_most=1000))
    assert stricter["rejected_length/below_at_least"] == sum(len(d.text) < 200 for d in documents)
    assert stricter["rejected_length/above_at_most"] == sum(len(d.text) > 1000 for d in documents)
    looser = corpus.apply(Applied(name="length", path=path, at_least=0), out="looser")
    assert looser["kept"] == len(documents)  # including those that the stage rejected
    assert corpus.json("waterfall")["attributes"][0]["at_least"] == 200


def test_under_a_threshold_a_rejection_without_a_value_stays_and_a_keep_without_one_is_an_error(small: Corpus) -> None:
    name = shard_name(0, 2)
    small.write("length", name, [("0", Decision(False, "empty")), *small.rows("length", name)[1:]])
    applied = Applied(name="length", path=f"{small.folder}/length", at_least=0)
    assert small.apply(applied)["rejected_length/empty"] == 1
    with pytest.raises(ShardError, match=r"Attribute 'case' of '0' in '.*part-00000.*' has no value, which at_least"):
        small.apply(Applied(name="case", path=f"{small.folder}/case", at_least=0), out="other")


def with_signal(small: Corpus, *values: object) -> str:
    """Add the key "words" to the rows of six documents, which the stage all rejects; return the attribute's path."""
    for i in range(2):
        rows = [
            (id, Decision(False, "too_short", value=1.0, fields={} if value is ... else {"words": value}))
            for id, value in zip(map(str, range(i, 6, 2)), values[i::2], strict=True)
        ]
        small.write("length", shard_name(i, 2), rows)
    return f"{small.folder}/length"


def test_a_threshold_compares_the_key_that_it_is_given(small: Corpus) -> None:
    path = with_signal(small, 1, 2.5, 3, None, 5, 6)
    result = small.apply(Applied(name="words", path=path, key="words", at_least=2, at_most=5))
    assert [d.id for d in small.kept()] == ["2", "4", "1"]
    reasons = {"below_at_least": 1, "above_at_most": 1, "no_number": 1}
    assert {name: result[f"rejected_words/{name}"] for name in reasons} == reasons
    assert small.json("waterfall")["attributes"][0]["key"] == "words"
    assert "words 1 ·" in re.sub("<.*?>", "", Path(f"{small.folder}/out/rejected.html").read_text())
    plain = small.apply(Applied(name="length", path=path, at_least=1), out="plain")
    assert plain["kept"] == 6
    assert "key" not in small.json("waterfall", out="plain")["attributes"][0]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (..., "has no key 'words', which at_least and at_most compare. Compute it with that key, or compare another"),
        ([1, 2], r"has 'words' as \[1, 2\], expected a number"),
        (True, "has 'words' as True, expected a number"),
        ("7", "has 'words' as '7', expected a number"),
    ],
)
def test_a_row_without_a_number_at_the_key_is_an_error(small: Corpus, value: object, sentence: str) -> None:
    path = with_signal(small, 1, 2, value, 4, 5, 6)
    with pytest.raises(ShardError, match=f"Attribute 'words' of '2' in '.*part-00000.*' {sentence}"):
        small.apply(Applied(name="words", path=path, key="words", at_least=2))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key": "words"}, "has key='words' without a threshold"),
        ({"key": "", "at_least": 1}, "has key='', expected a key of its rows"),
    ],
)
def test_an_invalid_key_is_an_error_before_the_run(changes: dict[str, Any], sentence: str) -> None:
    below = Step(name="length", fn=train_tokenizer, config=TrainTokenizerConfig(documents_path="/d"))
    applied = Applied(name="words", path=output_path_of(below), **changes)
    with pytest.raises(ConsolidateError, match=f"Step 'kept': Attribute 'words' {sentence}"):
        Step(name="kept", fn=consolidate, config=ConsolidateConfig(documents_path="/d", attributes=[applied]))


def test_a_document_that_is_empty_after_its_cuts_is_rejected(small: Corpus) -> None:
    rows = [(id, Decision(True, cut=((0, 7), (6, 99)))) for id in ("0", "2", "4")]
    texts = {d.id: d.text for d in read_documents(f"{small.folder}/documents/{shard_name(0, 2)}")}
    rows = [(id, Decision(True, value=0.5, cut=((0, 7), (6, len(texts[id]))))) for id, _ in rows]
    small.write("lines", shard_name(0, 2), rows)
    result = small.consolidate("lines", "quotes")
    assert (result["rejected_lines/empty_after_cut"], result["kept"]) == (3, 3)
    assert result["bytes_rejected"] == sum(len(text) for text in texts.values())
    assert small.json("rejected")["rejected"][0]["samples"][0]["value"] == 0.5


def test_a_cut_beyond_the_text_is_an_error(small: Corpus) -> None:
    rows = small.rows("lines", shard_name(0, 2))
    small.write("lines", shard_name(0, 2), [rows[0], (rows[1][0], Decision(True, cut=((3, 500),))), rows[2]])
    with pytest.raises(
        ShardError, match="'lines' of document '2' cuts characters 3 to 500 of a text of 29: it was computed"
    ):
        small.consolidate("lines")


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda s: (min(s), max(s))), max_size=8)


@given(text=st.text(min_size=30, max_size=40), spans=SPANS)
def test_the_union_of_cuts_matches_a_mask_of_characters(text: str, spans: list[tuple[int, int]]) -> None:
    merged = union(spans)
    mask = {i for a, b in spans for i in range(a, b)}
    assert without(text, merged) == "".join(c for i, c in enumerate(text) if i not in mask)
    assert {i for a, b in merged for i in range(a, b)} == mask
    assert all(left[1] < right[0] for left, right in itertools.pairwise(merged))


def test_formats_may_differ_between_documents_and_attributes(small: Corpus) -> None:
    for i in range(2):
        path = f"{small.folder}/documents/{shard_name(i, 2)}"
        write_rows(path.replace(".jsonl.zst", ".parquet"), [d.row() for d in read_documents(path)])
        Path(path).unlink()
    assert small.consolidate("case", "quotes")["kept"] == 6
    assert next(d.text for d in small.kept()) == "line 0\nand  more text 0"


@pytest.mark.parametrize("output_format", FORMATS)
def test_kept_documents_are_written_in_the_output_format(small: Corpus, output_format: str) -> None:
    expected = small.consolidate("case"), small.kept()
    assert (small.consolidate("case", out="other", output_format=output_format), small.kept("other")) == expected
    assert all(shard.endswith(output_format) for shard in list_shards(f"{small.folder}/other"))


def test_an_unknown_format_is_an_error(small: Corpus) -> None:
    with pytest.raises(DocumentError, match=r"output_format is '\.csv', expected one of '\.jsonl', "):
        small.consolidate("case", output_format=".csv")


def test_the_sample_is_the_same_for_any_number_of_shards_and_any_order(
    tmp_path: Path, documents: list[Document]
) -> None:
    shown = []
    for shards, texts in ((1, documents), (5, documents), (8, documents[::-1])):
        corpus = Corpus(tmp_path / str(shards), texts, shards)
        corpus.consolidate("length", "case", "lines", rejected_per_reason=7, rejected_characters=30)
        shown.append((corpus.json("rejected"), corpus.json("waterfall")))
    assert shown[0] == shown[1] == shown[2]
    rejected = shown[0][0]
    assert (rejected["format_version"], rejected["per_reason"], rejected["max_characters"]) == (1, 7, 30)
    by_id = {d.id: d for d in documents}
    for group in rejected["rejected"]:
        assert len(group["samples"]) == min(7, group["documents"])
        for sample in group["samples"]:
            d = by_id[sample["id"]]
            assert (sample["source"], sample["characters"], sample["text"]) == (d.source, len(d.text), d.text[:30])
    assert rejected["rejected"][0]["samples"][0]["value"] < 80


def test_the_sample_may_be_empty(small: Corpus) -> None:
    result = small.consolidate("length", rejected_per_reason=0)
    assert result["rejected"] == 6
    assert [group["samples"] for group in small.json("rejected")["rejected"]] == [[]]


def test_the_page_needs_nothing_else_and_shows_texts_as_they_are(tmp_path: Path) -> None:
    corpus = Corpus(
        tmp_path, [Document(id="<i>&", text="<script>alert(1)</script> &amp; \u00e9", source='"s"')], shards=1
    )
    corpus.consolidate("length")
    page = (tmp_path / "out/rejected.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;amp; \u00e9" in page
    assert "<script" not in page
    assert "<b>&lt;i&gt;&amp;</b>" in page
    assert not re.search(r"(?:src|href)=|url\(|@import", page)
    assert "0 of 1 documents are kept (0.0%)" in page


def test_the_output_is_the_same_here_and_on_ray_and_with_a_shard_that_was_finished_before(
    corpus: Corpus, shared_ray: None, request: pytest.FixtureRequest
) -> None:
    names = ("length", "case", "lines", "quotes")
    on_ray = corpus.consolidate(*names, out="on_ray")
    request.getfixturevalue("in_process")
    here = corpus.consolidate(*names, out="here")
    assert here == on_ray
    assert data_below(corpus.folder / "here") == data_below(corpus.folder / "on_ray")
    before = data_below(corpus.folder / "here")
    (corpus.folder / "here" / shard_name(1, 3)).unlink()
    assert corpus.consolidate(*names, out="here") == here
    assert data_below(corpus.folder / "here") == before


def test_recomputed_attributes_are_applied_again(small: Corpus) -> None:
    assert small.consolidate("case")["kept"] == 6
    small.write("case", shard_name(0, 2), [(id, Decision(False, "all")) for id in ("0", "2", "4")])
    assert small.consolidate("case")["kept"] == 3


def test_readers_of_documents_see_only_the_kept_ones(small: Corpus) -> None:
    small.consolidate("length")
    assert [Path(path).name for path in list_shards(f"{small.folder}/out")] == [shard_name(0, 2), shard_name(1, 2)]


def test_all_fields_of_an_attribute_enter_the_version() -> None:
    decided = Step(name="judged", fn=consolidate, config=ConsolidateConfig(documents_path="raw", attributes=[]))

    def version(*attributes: Applied, **changes: Any) -> str:
        config = ConsolidateConfig(documents_path=output_path_of(decided), attributes=attributes, **changes)
        graph = build_graph([Step(name="consolidated", fn=consolidate, config=config)])
        return next(node.version.hash for node in graph.nodes if node.name == "consolidated")

    a = Applied(name="a", path=output_path_of(decided, "a"))
    b = Applied(name="b", path=output_path_of(decided, "b"))
    others = [
        version(b, a),
        version(a),
        version(a, b, rejected_per_reason=versioned(3)),
        version(a, dataclasses.replace(b, path=output_path_of(decided, "c"))),
        *(
            version(a, Applied(**{"name": "b", "path": output_path_of(decided, "b"), **changes}))
            for changes in (
                {"name": "c"},
                {"at_least": 0.5},
                {"at_most": 0.5},
                {"missing": "keep"},
                {"key": "words", "at_most": 0.5},
            )
        ),
    ]
    assert len({version(a, b), *others}) == 1 + len(others)
    same = Applied(name=versioned("b"), path=output_path_of(decided, "b"), at_least=versioned(None), key="value")
    assert version(a, b) == version(a, same)


PEAK = """
import sys
from pathlib import Path
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateConfig, consolidate
from marin_assets.step.values import unwrap_versioned_value
folder = sys.argv[1]
applied = [Applied(name=name, path=f"{folder}/{name}") for name in ("length", "quotes")]
config = ConsolidateConfig(documents_path=f"{folder}/documents", attributes=applied, output_path=f"{folder}/out")
documents = consolidate(unwrap_versioned_value(config))["documents"]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(documents, status["VmHWM"].split()[0])  # getrusage would return the peak of the parent process
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_input(tmp_path: Path, documents: list[Document]) -> None:
    peaks = {}
    for times in (8, 80):
        folder = tmp_path / str(times)
        write_many(folder, documents, times)
        done = subprocess.run([sys.executable, "-c", PEAK, str(folder)], capture_output=True, text=True, check=True)
        count, peaks[times] = map(int, done.stdout.split())
        assert count == times * len(documents)
    print(json.dumps(peaks))
    assert peaks[80] <= 1.2 * peaks[8]


def write_many(folder: Path, documents: Sequence[Document], times: int) -> None:
    """One shard that repeats the documents."""

    def all_of_them() -> Iterator[Document]:
        for n in range(times):
            yield from (dataclasses.replace(d, id=f"{d.id}-{n}") for d in documents)

    name = shard_name(0, 1)
    write_documents(f"{folder}/documents/{name}", all_of_them())
    for attribute in ("length", "quotes"):
        rows = ((d.id, RULES[attribute](d)) for d in all_of_them())
        write_decisions(f"{folder}/{attribute}/{name}", rows, Counter())
