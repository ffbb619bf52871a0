"""The stages that the quickstart does not have, on each store: the same files with the same bytes, the same counts."""

from __future__ import annotations

import html
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pydoc_data.topics import topics
from typing import Any

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.stages.download.files import DownloadFilesConfig, download_files
from marin_assets.stages.sample.count_documents import CountDocumentsConfig, count_documents
from marin_assets.stages.sample.sample_documents import SampleDocumentsConfig, sample_documents
from marin_assets.stages.sample.split_documents import SplitDocumentsConfig, split_documents
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.stages.transform.text_files import TextFilesConfig, ingest_text_files
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_bytes, sizes_below, stored_files, write_bytes
from marin_resources.storage.paths import join

SHARDS = 3
LEFT = {".marin", ".checksums"}
"""Hidden folders that stages leave: notes of what is finished."""


def write_source(folder: str) -> None:
    pages = [Document(id=name, text=text, source="topics") for name, text in sorted(topics.items())]
    for i in range(SHARDS):
        write_documents(join(folder, f"part {i}, of pydoc=é.jsonl.zst"), pages[i::SHARDS])


def write_texts(folder: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, (name, text) in enumerate(sorted(topics.items())):
            if number % 2:
                write_bytes(join(folder, f"{number % 3} é/{name}.txt"), text.encode())
            else:
                archive.writestr(zipfile.ZipInfo(f"{name}.html"), f"<h1>{name}</h1><pre>{html.escape(text)}</pre>")
    write_bytes(join(folder, "pages.zip"), packed.getvalue())


def make_all(prefix: str) -> dict[str, Any]:
    """Each stage's output below the prefix; what the stages say."""
    write_source(join(prefix, "source"))
    write_texts(join(prefix, "texts"))
    documents = join(prefix, "documents")
    made: list[tuple[str, Callable[[Any], Any], Any]] = [
        ("raw", download_files, DownloadFilesConfig(source=join(prefix, "source"))),
        ("documents", ingest, IngestConfig(input_path=join(prefix, "raw"), id_column="id", metadata_columns="all")),
        ("parquet", ingest, IngestConfig(input_path=join(prefix, "raw"), output_format=".parquet")),
        ("of_texts", ingest_text_files, TextFilesConfig(input_path=join(prefix, "texts"))),
        ("counted", count_documents, CountDocumentsConfig(documents_path=join(prefix, "parquet"))),
        ("sampled", sample_documents, SampleDocumentsConfig(documents_path=documents, count=20)),
        ("split", split_documents, SplitDocumentsConfig(documents_path=documents)),
    ]
    told = {}
    for name, stage, config in made:
        told[name] = stage(unwrap_versioned_value(replace(config, output_path=join(prefix, name))))
    return told


def contents(prefix: str) -> dict[str, bytes]:
    return {file.name: read_bytes(file.path) for file in stored_files(prefix)}


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, bytes]]:
    prefix = str(tmp_path_factory.mktemp("prefix"))
    return make_all(prefix), contents(prefix)


def test_files_and_counts_are_those_of_a_disk(
    any_prefix: str, on_disk: tuple[dict[str, Any], dict[str, bytes]]
) -> None:
    told = make_all(any_prefix)
    assert contents(any_prefix) == on_disk[1]
    assert without_places(told) == without_places(on_disk[0])
    hidden = {part for name in sizes_below(any_prefix) for part in name.split("/") if part.startswith(".")}
    assert hidden <= LEFT


def without_places(told: dict[str, Any]) -> dict[str, Any]:
    """Without names of places, and the number of requests to a bucket, of which a disk has none."""
    return {
        name: {key: v for key, v in said.items() if not isinstance(v, str) and key != "requests"}
        for name, said in told.items()
    }
