"""Unambiguous prose is positive, unambiguous listings are negative; the rest has no label."""

from __future__ import annotations

from pathlib import Path

import pytest
from shard_files import data_of

from marin_assets.documents import Document, list_shards, read_documents, write_documents
from marin_assets.stages.quality.label_pydoc import LABELS, LabelPydocConfig, label_pydoc, listings, pieces_of, prose
from marin_assets.step.values import unwrap_versioned_value

PAGE = """# shutil

## Modules

  - fnmatch
  - os

## Functions

copy(src, dst, *, follow_symlinks=True)
Copy data and mode bits ("cp src dst"). Return the destination of the file, which may be a directory as
well, in which case the name of the source is appended to it and the permissions are those of the source.

move(src, dst, copy_function=<function copy2>)
Move a file.

Data descriptors defined here:
__dict__
dictionary for instance variables

Data and other attributes inherited from Error:
errno = int
filename = NoneType

get_archive_formats()

## Data

COPY_BUFSIZE = int
__all__ = list"""


def label(folder: Path, documents: list[Document], **changes: int) -> dict[str, int | float]:
    write_documents(f"{folder}/documents/a.jsonl", documents)
    config = LabelPydocConfig(documents_path=f"{folder}/documents", output_path=f"{folder}/labels", **changes)
    return label_pydoc(unwrap_versioned_value(config))


def examples(folder: Path, label: str) -> list[Document]:
    return [d for shard in list_shards(f"{folder}/labels/{label}") for d in read_documents(shard)]


def test_a_paragraph_of_sentences_is_prose_without_its_signature() -> None:
    [paragraph] = prose(PAGE)
    assert paragraph[0].startswith("Copy data and mode bits")
    assert len(paragraph) == 2


def test_runs_of_names_signatures_and_types_are_listings_without_headings() -> None:
    assert list(listings(PAGE)) == [
        ["- fnmatch", "- os"],
        ["errno = int", "filename = NoneType", "get_archive_formats()", "COPY_BUFSIZE = int", "__all__ = list"],
    ]


def test_a_paragraph_with_a_line_of_a_listing_is_not_prose() -> None:
    words = (
        "The drive and the root are joined with a slash if the path is absolute and of this kind, as it is for a file."
    )
    assert list(prose(f"{words}\n{words}"))
    assert not list(prose(f"{words}\nanchor\n{words}"))


def test_pieces_are_whole_lines_of_a_bounded_number_of_words() -> None:
    lines = [f"{i} = int" for i in range(30)]
    pieces = list(pieces_of(lines, 20, 60))
    assert [len(piece) for piece in pieces] == [20, 10]
    assert [line for piece in pieces for line in piece] == lines
    assert list(pieces_of(["one two", "word " * 61], 1, 60)) == [["one two"]]


def test_every_line_is_counted_once_and_examples_keep_their_page(tmp_path: Path) -> None:
    page = Document(id="p", text=PAGE, source="pydoc", metadata={"page": "shutil"})
    result = label(tmp_path, [page, Document(id="q", text="")], min_words=5)
    lines = len([line for line in PAGE.splitlines() if line.strip()])
    assert result["documents"] == 2
    assert result["lines"] == lines
    assert result["lines_positive"] + result["lines_negative"] + result["lines_unsure"] == lines
    assert (result["examples_positive"], result["examples_negative"]) == (1, 1)
    [example] = examples(tmp_path, "negative")
    assert (example.id, example.source, example.metadata) == ("p/0", "pydoc", {"page": "shutil"})


def test_length_predicts_little_of_the_label(tmp_path: Path, prose: list[Document], names: list[Document]) -> None:
    label(tmp_path, [*prose, *names])
    for kind in LABELS:
        found = examples(tmp_path, kind)
        assert len(found) > 50
        assert all(20 <= len(example.text.split()) <= 60 for example in found)


@pytest.mark.long
def test_the_bytes_are_the_same_here_and_on_ray(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prose: list[Document]
) -> None:
    documents = [*prose[:50], Document(id="p", text=PAGE)]
    request.getfixturevalue("shared_ray")
    on_ray = label(tmp_path / "ray", documents)
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
    assert label(tmp_path / "here", documents) == on_ray
    assert data_of(tmp_path / "here/labels") == data_of(tmp_path / "ray/labels")


def test_contradictory_bounds_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="min_words is 9 and max_words 8"):
        label(tmp_path, [Document(id="p", text=PAGE)], min_words=9, max_words=8)
