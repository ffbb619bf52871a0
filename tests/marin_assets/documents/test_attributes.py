from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy_rule import Length, length_rule

from marin_assets.documents import Document, DocumentError, read_rows, write_documents
from marin_assets.documents.attributes import KEPT, Decision, read_attributes, write_attributes
from marin_resources.ray_tpu.shards.map_shards import ShardError
from marin_resources.storage.files import list_files, read_from, write_bytes
from marin_resources.storage.paths import join


@pytest.fixture
def documents(any_prefix: str) -> str:
    """Write a folder of documents, on each store."""
    texts = [["one", "one two three", "a b c d"], ["x", "y", "z z z"], []]
    for index, shard in enumerate(texts):
        rows = [Document(id=f"{index}/{i}", text=text) for i, text in enumerate(shard)]
        write_documents(join(any_prefix, f"documents/deep/{index}.jsonl.gz"), rows)
    return join(any_prefix, "documents")


def decided(documents: str, **changes: object) -> dict[str, int | float]:
    return write_attributes(documents, out(documents), length_rule, Length(**changes))  # type: ignore[arg-type]


def out(documents: str) -> str:
    return documents.removesuffix("documents") + "out"


def test_every_document_has_one_decision_in_its_place(where: str, documents: str) -> None:
    counts = decided(documents)
    assert counts == {"documents": 6, "kept": 3, "rejected": 3, "rejected_too_short": 3}
    written = list_files(out(documents))
    assert written == [join(out(documents), f"deep/{index}.jsonl.zst") for index in range(3)]
    short = Decision(keep=False, reason="too_short", value=1)
    assert list(read_attributes(written[0])) == [("0/0", short), ("0/1", KEPT), ("0/2", KEPT)]
    assert list(read_attributes(written[1])) == [("1/0", short), ("1/1", short), ("1/2", KEPT)]
    assert list(read_attributes(written[2])) == []


def test_a_row_is_what_the_page_about_attributes_says(documents: str) -> None:
    decided(documents)
    [row, *_] = [row for _, row in read_rows(join(out(documents), "deep/0.jsonl.zst"))]
    assert row == {"id": "0/0", "keep": False, "reason": "too_short", "value": 1}
    assert json.dumps(row) == '{"id": "0/0", "keep": false, "reason": "too_short", "value": 1}'


def test_cuts_are_written_counted_and_read_back(documents: str) -> None:
    counts = decided(documents, cut_first_word=True)
    assert (counts["documents_cut"], counts["characters_cut"]) == (3, 5)
    decisions = dict(read_attributes(join(out(documents), "deep/0.jsonl.zst")))
    assert decisions["0/1"] == Decision(keep=True, cut=((0, 3),))


def test_a_rejection_without_a_reason_fails_the_stage(documents: str) -> None:
    with pytest.raises(ShardError, match="rejected without a reason"):
        decided(documents, without_reason=True)


@pytest.mark.parametrize(
    "wrong",
    [
        '"keep": "yes", "reason": "", "value": null',
        '"keep": true, "reason": 3, "value": null',
        '"keep": true, "reason": "", "value": "high"',
        '"keep": true, "reason": "", "value": true',
        '"keep": true, "reason": "", "value": 1, "cut": 3',
        '"keep": true, "reason": "", "value": 1, "cut": [[3]]',
        '"keep": true, "reason": "", "value": 1, "cut": [["a", "b"]]',
        '"keep": true, "reason": "", "value": 1, "cut": [[5, 2]]',
        '"keep": true, "reason": "", "value": 1, "cut": [[-4, 8]]',
    ],
)
def test_a_row_of_the_wrong_types_or_with_a_cut_backwards_is_an_error(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"id": "a", {wrong}}}\n')
    with pytest.raises(DocumentError, match=r"a\.jsonl' line 1 is not an attribute .* 'cut' with spans"):
        list(read_attributes(str(tmp_path / "a.jsonl")))


def test_a_line_that_is_not_an_attribute_is_reported_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "keep": true, "reason": "", "value": null}\n{"id": "b"}\n')
    attributes = read_attributes(str(tmp_path / "a.jsonl"))
    assert next(attributes) == ("a", KEPT)
    with pytest.raises(DocumentError, match=r"a\.jsonl' line 2 is not an attribute"):
        next(attributes)


def test_a_damaged_shard_of_documents_fails_the_stage_with_its_name(documents: str) -> None:
    shard = join(documents, "deep/0.jsonl.gz")
    write_bytes(shard, read_from(shard, 0)[:-9])
    with pytest.raises(ShardError, match=r"0\.jsonl\.gz' is damaged or truncated"):
        decided(documents)
