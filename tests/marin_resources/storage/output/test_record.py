"""The record on each kind of store: a local disk, GCS and S3."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from marin_assets.step.graph import build_graph
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.record import FORMAT_VERSION, NAME, RecordError, match, read_record, write_record
from marin_resources.storage.paths import join
from marin_resources.types.output import Match, Output
from marin_resources.types.record import Record


@dataclass(frozen=True)
class Config:
    n: Any
    input_path: Any = None


def do_nothing(config: Any) -> None:
    """Never run."""


@pytest.fixture
def output() -> Output:
    data = Step(name="raw/data", fn=do_nothing, config=Config(versioned({"b": 1.5, "a": [None, "ü"]})))
    step = Step(name="tokenized/data", fn=do_nothing, config=Config(versioned(3), output_path_of(data, "train")))
    graph = build_graph([step])
    return graph[step].output


MARIN = {
    "name": "tokenized/data",
    "fn_name": "marin.processing.tokenize.tokenize",
    "config": {"n": 3, "input_path": "gs://marin-us-central2/raw/data-1/train"},
    "override_output_path": None,
    "version": {
        "name": "tokenized/data",
        "config": {"n": 3, "input_path": "DEP[0]/train"},
        "dependencies": [
            {"name": "raw/data", "config": {"n": {"b": 1.5, "a": [None, "ü"]}}, "dependencies": []},
        ],
    },
    "dependencies": ["gs://marin-us-central2/raw/data-1"],
    "output_path": "gs://marin-us-central2/tokenized/data-1",
}
"""As marin-core writes it: the fields of the version in the order of their creation."""


def put(folder: str, record: object) -> None:
    write_bytes(join(folder, NAME), json.dumps(record, indent=2).encode())


def test_a_record_comes_back_with_its_format_version(any_prefix: str) -> None:
    write_record(any_prefix, Record.from_dict({"name": "a"}))
    assert read_record(any_prefix) == Record.from_dict({"format_version": FORMAT_VERSION, "name": "a"})


def test_no_record_is_none(any_prefix: str) -> None:
    assert read_record(any_prefix) is None
    write_bytes(join(any_prefix, "file"), b"data")
    assert read_record(join(any_prefix, "file")) is None


def test_marins_record_of_the_same_version_is_the_same(any_prefix: str, output: Output) -> None:
    put(any_prefix, MARIN)
    assert match(read_record(any_prefix), output) is Match.SAME


@pytest.mark.parametrize(
    "changed",
    [{"config": {"n": 4, "input_path": "DEP[0]/train"}}, {"dependencies": ["raw/data-123456"]}, {"name": "other"}],
)
def test_marins_record_of_another_version_is_another(any_prefix: str, output: Output, changed: dict[str, Any]) -> None:
    put(any_prefix, {**MARIN, "version": {**MARIN["version"], **changed}})  # type: ignore[dict-item]
    assert match(read_record(any_prefix), output) is Match.OTHER


def test_a_record_without_a_version_is_unverified(any_prefix: str, output: Output) -> None:
    put(any_prefix, {key: value for key, value in MARIN.items() if key != "version"})
    assert match(read_record(any_prefix), output) is Match.UNVERIFIED


def test_what_marins_step_runner_writes_is_unverified(any_prefix: str, output: Output) -> None:
    put(any_prefix, {**MARIN, "executor_version": "step_runner", "config": {"n": 3}, "version": {}})
    assert match(read_record(any_prefix), output) is Match.UNVERIFIED


def test_no_record_beside_an_output_is_unverified(output: Output) -> None:
    assert match(None, output) is Match.UNVERIFIED


def test_our_own_identity_is_compared_first(output: Output) -> None:
    assert match(Record.from_dict({"identity": output.identity}), output) is Match.SAME
    assert match(Record.from_dict({"identity": "0" * 64, "version": MARIN["version"]}), output) is Match.OTHER


def test_a_newer_format_is_refused_with_what_to_do(any_prefix: str) -> None:
    put(any_prefix, {**MARIN, "format_version": FORMAT_VERSION + 1})
    with pytest.raises(RecordError, match=f"{re.escape(any_prefix)}.* has format version 2 .* Update this checkout"):
        read_record(any_prefix)


def test_a_record_that_is_no_object_is_refused(any_prefix: str) -> None:
    put(any_prefix, ["a"])
    with pytest.raises(RecordError, match="is not a JSON object"):
        read_record(any_prefix)


def test_a_damaged_record_is_refused_by_its_path(any_prefix: str) -> None:
    write_bytes(join(any_prefix, NAME), b'{"name": "a')
    with pytest.raises(ValueError, match=f"{re.escape(any_prefix)}.* is not JSON"):
        read_record(any_prefix)
