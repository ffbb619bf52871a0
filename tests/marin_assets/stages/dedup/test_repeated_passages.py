"""Passages that occur earlier in the corpus are cut: all of them, and nothing else."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.documents import Document, list_shards, shard_name, write_documents
from marin_assets.documents.attributes import Decision, read_attributes
from marin_assets.documents.equal.hashes import DuplicatesError
from marin_assets.stages.dedup.repeated_passages import RepeatedPassagesConfig, repeated_passages
from marin_assets.stages.dedup.word_runs import covered, run_digests, words_of
from marin_assets.step.values import unwrap_versioned_value

PASSAGE = "It was the best of times and it was the worst of times"
WORDS = 4
Texts = list[list[str]]
"""The texts of each shard."""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def run(folder: Path, shards: Texts, *, sources: str = "", **fields: Any) -> tuple[dict[str, Any], list[Decision]]:
    """Return the counts, and each document's decision. `sources` has a letter for each document."""
    number = 0
    for shard, texts in enumerate(shards):
        documents = [
            Document(id=f"{number + i}", text=text, source=sources[number + i] if sources else "web")
            for i, text in enumerate(texts)
        ]
        number += len(texts)
        write_documents(str(folder / "documents" / shard_name(shard, len(shards))), documents)
    config = RepeatedPassagesConfig(
        documents_path=str(folder / "documents"), output_path=str(folder / "out"), **{"words": WORDS, **fields}
    )
    counts = repeated_passages(unwrap_versioned_value(config))
    return counts, [v for shard in list_shards(str(folder / "out")) for _, v in read_attributes(shard)]


def left(text: str, decision: Decision) -> str:
    for start, end in reversed(decision.cut):
        text = text[:start] + text[end:]
    return text


def test_a_passage_is_cut_where_it_occurs_again_and_its_neighbours_stay(tmp_path: Path) -> None:
    texts = [
        [f"First {PASSAGE} and on."],
        [f"Then {PASSAGE.replace(' ', chr(10) + ' ')} but not so. {PASSAGE}", PASSAGE],
    ]
    counts, decisions = run(tmp_path, texts)
    flat = [text for shard in texts for text in shard]
    assert [left(text, v) for text, v in zip(flat, decisions, strict=True)][:2] == [flat[0], "Then but not so. "]
    assert decisions[2] == Decision(keep=False, reason="only_repeated_passages", value=1.0)
    assert decisions[1].value == pytest.approx(1 - len("Then but not so. ") / len(flat[1]), abs=1e-5)
    assert (counts["kept"], counts["documents_cut"], counts["rejected_only_repeated_passages"]) == (2, 1, 1)
    assert counts["characters_cut"] == len(flat[1]) - len("Then but not so. ")


def test_shorter_passages_stay(tmp_path: Path) -> None:
    _, decisions = run(tmp_path, [["one two three four", "one two three", "zero two three four"]])
    assert [decision.cut for decision in decisions] == [()] * 3


def test_lines_are_cut_of_whose_runs_most_occur_earlier(tmp_path: Path) -> None:
    line = "a b c d e f g h i"
    texts = [[f"{line}\nnew"], [f"new\n{line} x\nold", f"{line} x y\nno more"]]
    _, decisions = run(tmp_path, texts, unit="line", share=0.8)
    assert left(texts[1][0], decisions[1]) == "new\nold", "six of its seven runs occur earlier"
    assert left(texts[1][1], decisions[2]) == "no more"
    _, stricter = run(tmp_path / "stricter", texts, unit="line", share=6 / 7)
    assert stricter[1].cut == (), "not a larger share"


def test_a_document_of_mostly_repeated_runs_is_rejected(tmp_path: Path) -> None:
    texts = [[PASSAGE, f"{PASSAGE} I say", f"{PASSAGE} and so on it went for a while"]]
    counts, decisions = run(tmp_path, texts, unit="line", document_share=0.7)
    assert [decision.reason for decision in decisions] == ["", "repeated_document", ""]
    assert decisions[1].value == pytest.approx(10 / 12, abs=1e-6)
    assert (counts["runs"], counts["runs_repeated"]) == (10 + 12 + 18, 20)


def test_a_ranking_of_sources_decides_where_a_passage_stays(tmp_path: Path) -> None:
    texts = [[f"web {PASSAGE} web", f"book {PASSAGE} book", f"news {PASSAGE} news"]]
    for ranking, kept in (((), 0), (("b",), 1), (("n", "b"), 2)):
        _, decisions = run(tmp_path / str(kept), texts, sources="wbn", source_ranking=ranking)
        assert [not decision.cut for decision in decisions] == [number == kept for number in range(3)]


def test_case_may_be_ignored_and_a_character_is_a_word_where_words_have_no_spaces(tmp_path: Path) -> None:
    texts = [["One Two Three Four, 吾輩は猫である"], ["one two three four. 吾輩は猫だ"]]
    _, decisions = run(tmp_path, texts)
    assert left(texts[1][0], decisions[1]) == "one two three four. だ"
    _, ignoring = run(tmp_path / "case", [["One Two Three Four"], ["a one two THREE four b"]], ignore_case=True)
    assert left("a one two THREE four b", ignoring[1]) == "a b"


def plain(texts: list[str], length: int) -> list[set[int]]:
    """The numbers of the words to cut of each text, by a plain loop."""
    seen: set[tuple[str, ...]] = set()
    cut: list[set[int]] = []
    for text in texts:
        words = text.split()
        cut.append(set())
        for i in range(len(words) - length + 1):
            gram = tuple(words[i : i + length])
            if gram in seen:
                cut[-1].update(range(i, i + length))
            seen.add(gram)
    return cut


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=14).map(" ".join), min_size=1, max_size=5), st.integers(1, 3))
def test_the_cut_words_are_those_of_a_plain_loop_for_any_shards(texts: list[str], shards: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        size = -(-len(texts) // shards)
        _, decisions = run(Path(folder), [texts[i : i + size] for i in range(0, len(texts), size)], words=3)
    for text, decision, cut in zip(texts, decisions, plain(texts, 3), strict=True):
        words = text.split()
        expected = [word for i, word in enumerate(words) if i not in cut]
        assert (left(text, decision).split() if decision.keep else []) == expected
        assert decision.keep == (not cut or bool(expected))


def test_covered_words_are_joined_where_runs_touch() -> None:
    assert covered([True, False, False, True, True], 2) == [(0, 2), (3, 6)]
    assert covered([True, False, True], 2) == [(0, 4)]
    assert covered([], 2) == []


def test_a_run_has_the_hash_of_its_words_whatever_is_between_them() -> None:
    one, other = "a b  c d", "x\na\tb c\nd e"
    digests, others = (run_digests(text, words_of(text), 4, ignore_case=False) for text in (one, other))
    assert len(digests) == 1
    assert digests[0] == others[1]
    assert run_digests("a b", words_of("a b"), 3, ignore_case=False) == []


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"unit": "runs"}, "unit is 'runs', expected .* Did you mean 'run'"),
        ({"words": 1}, "words is 1, expected a whole number from 2 on"),
        ({"words": "50"}, "words is '50'"),
        ({"share": 1.5}, "share is 1.5, expected a number from 0 to below 1"),
        ({"share": None}, "share is None"),
        ({"document_share": True}, "document_share is True"),
        ({"source_ranking": ("a", "a")}, "expected each source once"),
        ({"source_ranking": "web"}, "source_ranking is 'web'"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_read(fields: dict[str, Any], sentence: str) -> None:
    config = RepeatedPassagesConfig(documents_path="/none", output_path="/none", **fields)
    with pytest.raises(DuplicatesError, match=sentence):
        repeated_passages(unwrap_versioned_value(config))


def test_a_long_text_of_one_word_leaves_its_first(tmp_path: Path) -> None:
    began = time.process_time()
    counts, [decision] = run(tmp_path, [["spam " * 200_000]], words=50)
    assert left("spam " * 200_000, decision) == "spam "
    assert counts["groups"] == 1
    assert time.process_time() - began < 30


def test_many_texts_lose_as_much_as_a_set_of_all_runs_says(tmp_path: Path) -> None:
    draw = random.Random(7)
    phrases = [" ".join(draw.choices("abcdefghij", k=12)) for _ in range(30)]
    texts = [" ".join(draw.choices(phrases, k=6)) for _ in range(200)]
    counts, _ = run(tmp_path, [texts[:70], texts[70:]], words=8)
    runs = [tuple(words[i : i + 8]) for text in texts for words in [text.split()] for i in range(len(words) - 7)]
    assert (counts["runs"], counts["runs_repeated"]) == (len(runs), len(runs) - len(set(runs)))
    assert counts["groups"] == sum(number > 1 for number in Counter(runs).values())
