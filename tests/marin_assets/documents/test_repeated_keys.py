"""A key that occurs twice in a row is counted, and two columns of one name are an error; none is dropped in silence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marin_assets.documents import BadRow, DocumentError, read_documents, read_rows
from marin_assets.stages.transform.ingest import IngestConfig, ingest
from marin_assets.step.values import unwrap_versioned_value

REPEATED = (
    b'{"id": "a", "text": "first", "text": "last"}\n'
    b'{"id": "b", "text": "t", "metadata": {"k": 1, "k": 2}}\n'
    b'{"id": "c", "text": "t", "metadata": {"id": "c"}}\n'
)


def test_rows_with_a_repeated_key_have_its_last_value_and_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "raw/a.jsonl")
    (tmp_path / "raw").mkdir()
    Path(path).write_bytes(REPEATED)
    documents = list(read_documents(path))
    assert [(d.text, d.metadata) for d in documents] == [("last", {}), ("t", {"k": 2}), ("t", {"id": "c"})]
    assert f"{path!r} has 2 rows with a key twice, the first in line 1: the last value counts" in caplog.text
    config = IngestConfig(input_path=str(tmp_path / "raw"), output_path=str(tmp_path / "out"), metadata_columns="all")
    assert ingest(unwrap_versioned_value(config))["rows_with_repeated_keys"] == 2


def test_a_parquet_with_two_columns_of_one_name_is_an_error_if_that_is_read(tmp_path: Path) -> None:
    columns = [pa.array(["a"]), pa.array(["first"]), pa.array(["last"])]
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_arrays(columns, names=["id", "text", "text"]), path)
    for read in (None, ["text"]):
        with pytest.raises(DocumentError, match=r"a\.parquet' has 2 columns 'text', expected one"):
            list(read_rows(path, read))
    assert list(read_rows(path, ["id"])) == [(1, {"id": "a"})]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b' \t{"id": "a"} \t\r', {"id": "a"}),
        (b'{"id": "a"}{', BadRow("invalid_json", "Extra data: line 1 column 12 (char 11)")),
        (b'{"n": 1e400, "m": NaN}', None),
        (b'"text"', BadRow("not_an_object", "JSON of type str")),
        (b"nothing", BadRow("invalid_json", "Expecting value: line 1 column 1 (char 0)")),
    ],
)
def test_a_line_is_parsed_as_the_standard_library_parses_it(tmp_path: Path, line: bytes, row: object) -> None:
    (tmp_path / "a.jsonl").write_bytes(line)
    [(_, found)] = read_rows(str(tmp_path / "a.jsonl"))
    assert found == row or (row is None and repr(found) == "{'n': inf, 'm': nan}")
