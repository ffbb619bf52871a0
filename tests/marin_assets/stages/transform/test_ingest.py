"""Rows with any columns become documents; bad rows fail the stage or are counted."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from marin_assets.documents import FORMATS, Document, list_shards, read_documents, write_rows
from marin_assets.stages.transform.ingest import REASONS, IngestConfig, IngestError, ingest
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.ray_tpu.shards.map_shards import ShardError


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may be up in this process for other tests."""
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


def run(folder: Path, **fields: Any) -> tuple[dict[str, Any], list[Document]]:
    config = IngestConfig(input_path=str(folder / "raw"), output_path=str(folder / "documents"), **fields)
    counts = ingest(unwrap_versioned_value(config))
    return counts, [d for shard in list_shards(str(folder / "documents")) for d in read_documents(shard)]


def put(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    write_rows(str(folder / "raw" / name), rows)


@pytest.mark.parametrize("format", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_columns_of_any_name_become_documents(tmp_path: Path, format: str) -> None:
    put(
        tmp_path, f"deep/a{format}", {"url": "u1", "content": "One", "n": 1}, {"url": "u2", "content": "Two", "n": None}
    )
    counts, documents = run(tmp_path, text_column="content", id_column="url", source="web", metadata_columns=("n",))
    assert documents == [
        Document(id="u1", text="One", source="web", metadata={"n": 1}),
        Document(id="u2", text="Two", source="web", metadata={"n": None}),
    ]
    assert counts == {
        "documents": 2,
        "kept": 2,
        "rejected": 0,
        **{f"rejected_{reason}": 0 for reason in REASONS},
        "bytes": 6,
        "whitespace_runs_cut": 0,
    }
    assert (tmp_path / "documents/deep/a.jsonl.zst").exists()


def test_without_an_id_column_the_id_is_a_hash_of_the_text(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {"text": "héllo"}, {"text": "héllo"}, {"text": "other"})
    _, documents = run(tmp_path)
    assert [d.id for d in documents[:2]] == [xxhash.xxh3_128_hexdigest("héllo".encode())] * 2
    assert documents[2].id != documents[0].id


def test_all_columns_of_parquet_become_metadata_of_json_values(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    day = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    columns = {
        "id": [7],
        "text": ["t"],
        "day": [day],
        "price": [decimal.Decimal("1.50")],
        "nan": [float("nan")],
        "tags": [["a", "b"]],
        "nested": [{"x": 1, "y": [day.date()]}],
    }
    pq.write_table(pa.table(columns), tmp_path / "raw/a.parquet")
    _, [document] = run(tmp_path, id_column="id", metadata_columns="all")
    assert document.id == "7"
    assert document.metadata == {
        "day": day.isoformat(),
        "price": "1.50",
        "nan": None,
        "tags": ["a", "b"],
        "nested": {"x": 1, "y": ["2024-05-01"]},
    }


BAD_LINES = {
    "invalid_utf8": b'{"text": "\xff"}',
    "invalid_json": b'{"text": ',
    "not_an_object": b'["text"]',
    "no_text": b'{"body": "x", "title": "y"}',
    "text_not_a_string": b'{"text": 3}',
    "empty": b'{"text": " \\n "}',
    "no_id": b'{"text": "x", "url": ""}',
    "too_long": b'{"text": "%s"}',
}


def bad_line(reason: str) -> bytes:
    return BAD_LINES[reason].replace(b"%s", b"x" * 65 * 1024**2)


GOOD = b'{"text": "good", "url": "u"}'


def test_every_bad_row_is_counted_under_its_reason(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    lines = [GOOD, *map(bad_line, BAD_LINES), b"", b'{"text": "\\ud800", "url": "u"}', GOOD]
    (tmp_path / "raw/a.jsonl").write_bytes(b"\n".join(lines))
    counts, documents = run(tmp_path, id_column="url", bad_rows="reject", max_bad_fraction=0.9)
    assert [d.text for d in documents] == ["good", "good"]
    assert {r: counts[f"rejected_{r}"] for r in BAD_LINES} == {**dict.fromkeys(BAD_LINES, 1), "invalid_utf8": 2}
    assert counts["documents"] == 11 == counts["kept"] + counts["rejected"] == 2 + 9


@pytest.mark.parametrize("reason", sorted(BAD_LINES))
def test_a_bad_row_fails_the_stage_with_file_and_line(tmp_path: Path, reason: str) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.jsonl").write_bytes(GOOD + b"\n\n" + bad_line(reason) + b"\n")
    with pytest.raises(ShardError, match=rf"raw/a\.jsonl' line 3 is not a document \({reason}: .*bad_rows='reject'"):
        run(tmp_path, id_column="url")


def test_a_wrong_text_column_does_not_produce_an_empty_corpus(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {"content": "x"}, {"content": "y"})
    with pytest.raises(
        IngestError, match=r"2 of the 2 rows of .*raw' are not documents \(2 no_text\).*text_column 'text'"
    ):
        run(tmp_path, bad_rows="reject")
    with pytest.raises(ShardError, match="it has no column 'text', only 'content'"):
        run(tmp_path)


@pytest.mark.parametrize("format", [".jsonl", ".parquet"])
@pytest.mark.parametrize("field", ["text_column", "id_column"])
def test_a_wrong_column_is_a_sentence_with_the_columns_and_the_nearest(tmp_path: Path, format: str, field: str) -> None:
    put(tmp_path, f"a{format}", {"title": "t", "Body": "b"})
    columns = {"text_column": "Body", "id_column": "title", field: "bdoy"}
    with pytest.raises(ShardError) as raised:
        run(tmp_path, **columns)
    sentence = str(raised.value)
    assert sentence.startswith(f"'{tmp_path}/raw/a{format}' ")
    assert "no column 'bdoy', only 'title', 'Body', of which 'Body' is the nearest" in sentence
    assert "{" not in sentence, "no config is printed"


def test_a_wrong_column_is_named_also_where_bad_rows_are_counted(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {"title": "t", "body": "b"})
    with pytest.raises(IngestError, match=r"first row of .*a\.jsonl' has no column 'bdoy', only 'title', 'body'"):
        run(tmp_path, text_column="bdoy", bad_rows="reject")


def test_of_many_columns_twenty_are_named(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {f"column_{i}": "x" for i in range(50)} | {"text": "y"})
    with pytest.raises(ShardError, match=r"'column_19' and 31 more, of which 'text' is the nearest"):
        run(tmp_path, text_column="texts")


def test_a_column_that_parquet_lacks_is_reported_with_those_it_has(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"content": "x", "url": "u"})
    with pytest.raises(ShardError, match=r"a\.parquet' has no column 'text', only 'content', 'url'"):
        run(tmp_path, bad_rows="reject", max_bad_fraction=1.0)


@pytest.mark.parametrize("format", [".jsonl", ".parquet"])
def test_a_metadata_column_that_some_files_lack_is_counted(tmp_path: Path, format: str) -> None:
    put(tmp_path, f"a{format}", {"text": "x", "score": 1}, {"text": "y", "score": None})
    put(tmp_path, f"b{format}", {"text": "z"})
    counts, documents = run(tmp_path, metadata_columns=("score",))
    assert [d.metadata for d in documents] == [{"score": 1}, {"score": None}, {}]
    assert counts["documents_without_score"] == 1


def test_a_metadata_column_that_all_files_of_parquet_lack_is_a_wrong_name(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"text": "x", "score": 1})
    put(tmp_path, "b.parquet", {"text": "z"})
    with pytest.raises(IngestError, match=r"No document of .* has the column 'scor' of metadata_columns"):
        run(tmp_path, metadata_columns=("scor", "score"))


def test_a_corpus_of_lines_need_not_have_the_metadata_that_others_have(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {"text": "x"})
    counts, [document] = run(tmp_path, metadata_columns=("score",))
    assert (document.metadata, counts["documents_without_score"]) == ({}, 1)


FAR = 10**18
"""Microseconds: the year 33658."""
TIMES = {
    "far": (pa.array([0, FAR], pa.timestamp("us")), "33658-09-27T01:46:40.000000"),
    "before": (pa.array([0, -FAR], pa.timestamp("us")), "-29719-04-05T22:13:20.000000"),
    "seconds": (pa.array([0, 10**12], pa.timestamp("s", tz="UTC")), "33658-09-27T01:46:40.000+00:00"),
    "zone": (pa.array([0, 10**6], pa.timestamp("us", tz="Mars/Base")), "1970-01-01T00:00:01.000000+00:00"),
    "offset": (pa.array([0, 10**6], pa.timestamp("us", tz="+99:00")), "1970-01-01T00:00:01.000000+00:00"),
    "date": (pa.array([0, 10**8], pa.int32()).cast(pa.date32()), "275760-09-13"),
    "milliseconds": (pa.array([0, 10**15], pa.timestamp("ms")).cast(pa.date64()), "33658-09-27"),
    "list": (pa.array([[0], [None, FAR]], pa.list_(pa.timestamp("us"))), [None, "33658-09-27T01:46:40.000000"]),
    "struct": (
        pa.array([{"a": 0, "b": 1}, {"a": FAR, "b": 2}], pa.struct([("a", pa.timestamp("us")), ("b", pa.int64())])),
        {"a": "33658-09-27T01:46:40.000000", "b": 2},
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_a_time_that_python_cannot_hold_is_a_text(tmp_path: Path, name: str) -> None:
    times, written = TIMES[name]
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"text": ["x", "y"], "at": times}), tmp_path / "raw/a.parquet")
    _, documents = run(tmp_path, metadata_columns=("at",))
    assert documents[1].metadata == {"at": written}
    assert run(tmp_path)[0]["kept"] == 2


def test_a_duration_of_any_length_has_no_json_form(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"text": ["x"], "for": pa.array([FAR], pa.duration("s"))}), tmp_path / "raw/a.parquet")
    with pytest.raises(ShardError, match="bad_metadata: a value of type timedelta64"):
        run(tmp_path, metadata_columns=("for",))


def test_bytes_are_rejected_as_metadata(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"text": ["t"], "image": [b"\x89PNG"]}), tmp_path / "raw/a.parquet")
    with pytest.raises(ShardError, match=r"bad_metadata: a value of type bytes, b'\\x89PNG', has no JSON form"):
        run(tmp_path, metadata_columns="all")
    assert run(tmp_path)[0]["kept"] == 1


def test_long_runs_of_whitespace_are_shortened_on_request(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", {"text": "a" + " " * 200 + "b" + "\n" * 5 + "c"})
    assert len(run(tmp_path)[1][0].text) == 208
    counts, [document] = run(tmp_path, max_whitespace_run=128)
    assert document.text == "a" + " " * 128 + "b" + "\n" * 5 + "c"
    assert counts["whitespace_runs_cut"] == 1


def test_files_without_rows_are_an_error(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl")
    with pytest.raises(IngestError, match="have no rows"):
        run(tmp_path)


def test_a_byte_order_mark_is_not_part_of_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.jsonl").write_text(json.dumps({"text": "x"}) + "\r\n", encoding="utf-8-sig")
    assert run(tmp_path)[0]["kept"] == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bad_rows": "skip"}, r"bad_rows is 'skip', expected one of 'fail', 'reject'"),
        ({"max_bad_fraction": 2}, "max_bad_fraction is 2, expected a fraction from 0 to 1"),
        ({"max_whitespace_run": 0}, "max_whitespace_run is 0"),
        ({"metadata_columns": "url"}, "metadata_columns is 'url', expected names in a tuple, or 'all'"),
    ],
)
def test_an_invalid_config_is_an_error(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IngestError, match=sentence):
        run(tmp_path, **fields)


@pytest.mark.long
def test_on_ray_and_in_process_the_documents_are_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for shard in range(4):
        put(tmp_path, f"{shard}.jsonl", *({"text": f"{shard} {i}"} for i in range(20)), {"text": ""})
    raw = IngestConfig(input_path=str(tmp_path / "raw"), bad_rows="reject", max_bad_fraction=0.1, output_path="")
    results = []
    for name in ("here", "ray"):
        if name == "ray":
            request.getfixturevalue("shared_ray")
            monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: True)
        config = unwrap_versioned_value(IngestConfig(**{**vars(raw), "output_path": str(tmp_path / name)}))
        counts = ingest(config)
        results.append((counts, [Path(shard).read_bytes() for shard in list_shards(str(tmp_path / name))]))
    assert results[0] == results[1]
    assert results[0][0]["rejected_empty"] == 4


@pytest.mark.parametrize("output_format", FORMATS)
def test_documents_are_written_in_the_requested_format(tmp_path: Path, output_format: str) -> None:
    write_rows(f"{tmp_path}/raw/a.jsonl", [{"text": "some text"}, {"text": "more\u2028of it"}])
    _, documents = run(tmp_path, output_format=output_format)
    assert [document.text for document in documents] == ["some text", "more\u2028of it"]
    assert [path.name for path in (tmp_path / "documents").glob("[!.]*")] == [f"a{output_format}"]
