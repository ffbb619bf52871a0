"""The later occurrences of a paragraph are cut, the first is kept, and no other text changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marin_assets.documents import Document, list_shards, shard_name, write_documents
from marin_assets.documents.attributes import Decision, read_attributes
from marin_assets.stages.dedup.exact_paragraphs import DuplicateParagraphsConfig, duplicate_paragraphs
from marin_assets.step.values import unwrap_versioned_value

LONG = "A paragraph that is longer than thirty characters."
OTHER = "Another paragraph, which is long enough as well."


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process, even if Ray runs for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def run(folder: Path, shards: list[list[str]], **fields: Any) -> tuple[dict[str, Any], list[tuple[Decision, str]]]:
    """Return the counts, and each document's decision with the rest of its text."""
    for number, texts in enumerate(shards):
        path = str(folder / "documents" / shard_name(number, len(shards)))
        write_documents(path, (Document(id="x", text=text) for text in texts))
    config = DuplicateParagraphsConfig(
        documents_path=str(folder / "documents"), output_path=str(folder / "attributes"), **fields
    )
    counts = duplicate_paragraphs(unwrap_versioned_value(config))
    decisions = [v for shard in list_shards(str(folder / "attributes")) for _, v in read_attributes(shard)]
    texts = [text for shard in shards for text in shard]
    return counts, [(v, left(text, v)) for v, text in zip(decisions, texts, strict=True)]


def left(text: str, decision: Decision) -> str:
    for start, end in reversed(decision.cut):
        text = text[:start] + text[end:]
    return text


def test_later_paragraphs_are_cut_with_the_blank_line_after_them(tmp_path: Path) -> None:
    texts = [[f"Title\n\n{LONG}\n\nEnd.", f"Title\n\n{LONG}\n\nEnd."], [f"{OTHER}\n\n{LONG}", f"{LONG}\n\n {OTHER} \n"]]
    counts, decided = run(tmp_path, texts)
    assert [text for _, text in decided] == [texts[0][0], "Title\n\nEnd.", OTHER, texts[1][1]]
    assert [(v.keep, v.reason) for v, _ in decided] == [(True, "")] * 3 + [(False, "only_duplicate_paragraphs")]
    assert decided[1][0].value == pytest.approx((len(LONG) + 2) / len(texts[0][1]), abs=1e-6)
    assert decided[3][0] == Decision(keep=False, reason="only_duplicate_paragraphs", value=1.0)
    assert counts == {
        "documents": 4,
        "kept": 3,
        "rejected": 1,
        "rejected_only_duplicate_paragraphs": 1,
        "documents_cut": 2,
        "characters_cut": 2 * (len(LONG) + 2),
        "characters": sum(len(text) for shard in texts for text in shard),
        "paragraphs": 6,
        "paragraphs_cut": 4,
        "groups": 2,
    }


def test_a_text_that_repeats_itself_keeps_the_first_occurrence(tmp_path: Path) -> None:
    _, [(_, text)] = run(tmp_path, [[f"{LONG}\n\n{OTHER}\n\n{LONG}\n\n{LONG}\n\nshort\n\nshort"]])
    assert text == f"{LONG}\n\n{OTHER}\n\nshort\n\nshort"


def test_paragraphs_whose_lines_end_in_crlf_are_paragraphs_too(tmp_path: Path) -> None:
    first, second = "the first paragraph, long enough to count", "the second paragraph, long enough to count"
    text = f"{first}\r\n\r\n{second}\r\n"
    _, [(_, kept), (decision, rest)] = run(tmp_path, [[text, f"{second}\n\nmore\r\n"]])
    assert (kept, rest) == (text, "more\r\n")
    assert decision.keep


def test_lines_are_compared_without_case_on_request(tmp_path: Path) -> None:
    texts = [[f"{LONG}\n{OTHER}\n"], [f"x\n  {LONG.upper()}\ny"]]
    _, decided = run(tmp_path, texts, unit="line", normalize="whitespace_and_case")
    assert [text for _, text in decided] == [texts[0][0], "x\ny"]


PIECES = st.lists(st.sampled_from(["aaa", "bbb", " aaa", "c", "", "\n", "é" * 4]), max_size=6).map("\n\n".join)


@settings(max_examples=12, deadline=None)
@given(shards=st.lists(st.lists(PIECES, max_size=4), min_size=1, max_size=3))
def test_every_long_paragraph_is_kept_once_and_every_short_one_everywhere(shards: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        counts, decided = run(Path(name), shards, min_characters=3)
    seen: set[str] = set()
    for (decision, rest), text in zip(decided, [t for shard in shards for t in shard], strict=True):
        wanted = []
        for paragraph in (p.strip() for p in text.split("\n\n")):
            if len(paragraph) < 3 or paragraph not in seen:
                wanted += [paragraph] if paragraph else []
            seen |= {paragraph} if len(paragraph) >= 3 else set()
        assert all(a < b for a, b in decision.cut)
        assert all(b < c for (_, b), (c, _) in zip(decision.cut, decision.cut[1:], strict=False))
        if decision.keep:
            assert [p.strip() for p in rest.split("\n\n") if p.strip()] == wanted
            assert decision.value == pytest.approx(1 - len(rest) / len(text) if text else 0, abs=1e-6)
        else:
            assert wanted == []
    assert counts["documents"] == len(decided) == counts["kept"] + counts["rejected"]


def test_a_document_without_text_is_kept(tmp_path: Path) -> None:
    _, decided = run(tmp_path, [["", "\n\n"], ["", " "]])
    assert all(decision == Decision(keep=True, value=0) for decision, _ in decided)


@pytest.mark.long
def test_on_ray_and_in_process_the_attributes_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    shards = [["\n\n".join(f"{LONG} {i * k % 17}" for k in range(9)) for i in range(20)] for _ in range(5)]
    here = run(tmp_path / "here", shards)
    request.getfixturevalue("shared_ray")
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: True)
    assert run(tmp_path / "ray", shards) == here
    for shard in list_shards(str(tmp_path / "here/attributes")):
        assert Path(shard).read_bytes() == (tmp_path / "ray/attributes" / Path(shard).name).read_bytes()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"unit": "word"}, r"unit is 'word', expected one of 'line', 'paragraph'"),
        ({"min_characters": 0}, "min_characters is 0, expected 1 or more"),
        ({"normalize": "x"}, "normalize is 'x'"),
    ],
)
def test_an_invalid_config_is_an_error(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        run(tmp_path, [["a"]], **fields)
