"""Attributes and documents that do not belong together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from decided import Corpus

from marin_assets.documents import Document, shard_name, write_rows
from marin_assets.documents.attributes import KEPT
from marin_assets.stages.consolidate.consolidate import Applied, ConsolidateError
from marin_resources.ray_tpu.shards.map_shards import ShardError


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda rows: [rows[0], rows[2]],
            "has no row for document '2' of '.*documents/part-00000.*'. Compute it from",
        ),
        (lambda rows: rows[:2], "has no row for document '4' of"),
        (lambda rows: [*rows, ("9", KEPT)], "has a row for '9', which is no document of '.*part-00000"),
        (lambda rows: [("9", KEPT), *rows], "has a row for '9', which is no document of"),
        (lambda rows: rows[::-1], "has the row of '4' where document '0' was expected of '.*': it is in another order"),
        (lambda rows: [*rows, rows[1]], "has the row of '2' after the last document of .* or a row occurs twice"),
        (lambda rows: [rows[0], rows[0], *rows[1:]], "has the row of '0' where document '2' was expected"),
    ],
)
def test_rows_that_do_not_match_are_an_error_that_names_them(small: Corpus, damage: Any, sentence: str) -> None:
    small.write("length", shard_name(0, 2), damage(small.rows("length", shard_name(0, 2))))
    with pytest.raises(ShardError, match=f"Attribute 'length' in '.*/length/part-00000-of-00002.jsonl.zst' {sentence}"):
        small.consolidate("length", "case")


def test_documents_of_one_id_have_a_row_each(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, [Document(id="a", text="x" * 100), Document(id="a", text="short")], shards=1)
    assert corpus.consolidate("length")["rejected_length/too_short"] == 1
    corpus.write("length", shard_name(0, 1), corpus.rows("length", shard_name(0, 1))[:1])
    with pytest.raises(ShardError, match="ends before document 'a' of"):
        corpus.consolidate("length", out="other")


@pytest.mark.parametrize(("missing", "kept"), [("keep", 6), ("reject", 5)])
def test_missing_rows_may_be_allowed(small: Corpus, missing: str, kept: int) -> None:
    small.write("case", shard_name(0, 2), small.rows("case", shard_name(0, 2))[1:])
    applied = Applied(name="case", path=f"{small.folder}/case", missing=missing)
    result = small.apply(applied)
    assert (result["kept"], result["missing_case"]) == (kept, 1)
    assert result.get("rejected_case/missing", 0) == 6 - kept
    assert small.json("waterfall")["attributes"][0]["documents_missing"] == 1
    small.write("case", shard_name(0, 2), small.rows("case", shard_name(0, 2))[::-1])
    with pytest.raises(ShardError, match=r"after the last document of .*: it is in another order"):
        small.apply(applied, out="other")


def test_a_missing_file_is_an_error_that_names_it_unless_it_is_allowed(small: Corpus) -> None:
    Path(f"{small.folder}/case/{shard_name(1, 2)}").unlink()
    with pytest.raises(
        ConsolidateError, match=r"Attribute 'case' has no file '.*/case/part-00001-of-00002.jsonl.zst' for"
    ):
        small.consolidate("length", "case")
    allowed = small.apply(Applied(name="case", path=f"{small.folder}/case", missing="reject"))
    assert (allowed["rejected_case/missing"], allowed["kept"]) == (3, 3)


def test_a_folder_of_other_documents_is_an_error_even_if_missing_rows_are_allowed(small: Corpus) -> None:
    small.write("elsewhere", "other-00000.jsonl.zst", [("0", KEPT)])
    with pytest.raises(ConsolidateError, match=r"has no file .* lack theirs"):
        small.apply(Applied(name="elsewhere", path=f"{small.folder}/elsewhere", missing="keep"))
    small.write("case", "part-00009-of-00002.jsonl.zst", [("0", KEPT)])
    with pytest.raises(ConsolidateError, match=r"has '.*part-00009.*', which matches no shard of documents"):
        small.consolidate("case")
    with pytest.raises(FileNotFoundError, match=r"Nothing exists at '.*/nowhere'"):
        small.consolidate("nowhere")


def test_a_line_that_is_not_an_attribute_is_an_error(small: Corpus) -> None:
    write_rows(f"{small.folder}/case/{shard_name(0, 2)}", [{"id": "0", "score": 1}])
    with pytest.raises(ShardError, match=r"part-00000-of-00002.jsonl.zst' line 1 is not an attribute"):
        small.consolidate("case")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "a/b"}, "has the name 'a/b', expected letters"),
        ({"name": "case"}, "each name once"),
        ({"missing": "drop"}, "missing='drop', expected 'error', 'keep' or 'reject'"),
        ({"at_least": 2, "at_most": 1}, "at_least=2 above at_most=1"),
    ],
)
def test_an_invalid_config_is_an_error(small: Corpus, changes: dict[str, Any], sentence: str) -> None:
    applied = Applied(**{"name": "length", "path": f"{small.folder}/length", **changes})
    with pytest.raises(ConsolidateError, match=re.escape(sentence)):
        small.apply(Applied(name="case", path=f"{small.folder}/case"), applied)
