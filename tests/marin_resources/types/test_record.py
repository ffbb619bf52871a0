"""The record of an output: its fields are said in one class, and nothing else reads them by their names in JSON."""

from __future__ import annotations

import re
from pathlib import Path

from marin_resources.storage.output.commit import FORMAT as COMMIT
from marin_resources.storage.output.record import FORMAT
from marin_resources.types.record import Record

ROOT = Path(__file__).resolve().parents[3]
BY_NAME = re.compile(r"""(\brecord|\.record)(\)?\[["']|\)?\.get\(["'])|\brecord or \{\}""")
"""`record["x"]`, `seen.record.get("x")`, `(seen.record or {})`."""


def test_no_module_reads_a_record_by_the_names_of_its_fields() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in ("marin_assets", "marin_resources", "marin_sensors")
        for path in sorted((ROOT / package).rglob("*.*"))
        if path.suffix in (".py", ".j2", ".jinja")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BY_NAME.search(line)
    ]
    assert found == []


def test_a_record_and_the_copy_in_a_commit_object_are_checked_by_the_fields_of_the_class() -> None:
    assert FORMAT.shape is Record.shape
    assert COMMIT.shape["record"] is Record.shape


def test_a_record_of_marins_keeps_fields_that_it_alone_has() -> None:
    fields = {"name": "raw/x", "fn_name": "train", "pip_dependency_groups": ["cpu"], "is_pseudo_dep": False}
    record = Record.from_dict(fields)
    assert (record.name, record.fn_name) == ("raw/x", "train")
    assert record.to_dict() == fields


def test_the_parts_of_a_record_are_attributes() -> None:
    record = Record.from_dict(
        {
            "manifest": {"digest": "d", "files": 2, "bytes": 5},
            "adopted": {"from": "gs://a/b", "why": "renamed", "of": {"name": "raw/old"}},
            "adopted_inputs": {"raw/x": {"from": "gs://a/x", "why": "older"}},
            "spent": {"wall_s": 3.5},
            "job": {"id": "1", "dashboard": "http://head"},
        }
    )
    assert (record.manifest.digest, record.manifest.files, record.manifest.bytes) == ("d", 2, 5)
    assert record.adopted is not None
    assert (record.adopted.path, record.adopted.why, record.adopted.of["name"]) == ("gs://a/b", "renamed", "raw/old")
    assert record.adopted_inputs["raw/x"].path == "gs://a/x"
    assert (record.spent.wall_s, record.spent.cpu_s) == (3.5, None)
    assert record.job is not None
    assert record.job.dashboard == "http://head"


def test_an_empty_result_is_recorded_and_a_missing_one_is_not() -> None:
    assert Record.from_dict({"result": {}}).has_result
    assert not Record.from_dict({"name": "x"}).has_result
    assert dict(Record().result) == {}
