from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marin_assets.step.graph import build_graph
from marin_assets.step.resolve import output_of
from marin_assets.step.step import Step
from marin_assets.step.values import output_path_of, versioned
from marin_resources.output import Match, Output
from marin_resources.storage.record import FORMAT_VERSION, NAME, RecordError, match, read_record, write_record


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
    return output_of(graph[step])


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
"""As marin-core writes it: the version in the order in which it was put together."""


def put(folder: Path, record: object) -> None:
    (folder / NAME).write_text(json.dumps(record, indent=2))


def test_a_record_comes_back_with_its_format_version(tmp_path: Path) -> None:
    write_record(str(tmp_path), {"name": "a"})
    assert read_record(str(tmp_path)) == {"format_version": FORMAT_VERSION, "name": "a"}


def test_no_record_is_none(tmp_path: Path) -> None:
    assert read_record(str(tmp_path)) is None
    (tmp_path / "file").write_text("data")
    assert read_record(str(tmp_path / "file")) is None


def test_marins_record_of_the_same_version_is_the_same(tmp_path: Path, output: Output) -> None:
    put(tmp_path, MARIN)
    assert match(read_record(str(tmp_path)), output) is Match.SAME


@pytest.mark.parametrize(
    "changed",
    [{"config": {"n": 4, "input_path": "DEP[0]/train"}}, {"dependencies": ["raw/data-123456"]}, {"name": "other"}],
)
def test_marins_record_of_another_version_is_another(tmp_path: Path, output: Output, changed: dict[str, Any]) -> None:
    put(tmp_path, {**MARIN, "version": {**MARIN["version"], **changed}})  # type: ignore[dict-item]
    assert match(read_record(str(tmp_path)), output) is Match.OTHER


def test_a_record_without_a_version_is_unverified(tmp_path: Path, output: Output) -> None:
    put(tmp_path, {key: value for key, value in MARIN.items() if key != "version"})
    assert match(read_record(str(tmp_path)), output) is Match.UNVERIFIED


def test_what_marins_step_runner_writes_is_unverified(tmp_path: Path, output: Output) -> None:
    put(tmp_path, {**MARIN, "executor_version": "step_runner", "config": {"n": 3}, "version": {}})
    assert match(read_record(str(tmp_path)), output) is Match.UNVERIFIED


def test_no_record_beside_an_output_is_unverified(output: Output) -> None:
    assert match(None, output) is Match.UNVERIFIED


def test_our_own_identity_is_compared_first(output: Output) -> None:
    assert match({"identity": output.identity}, output) is Match.SAME
    assert match({"identity": "0" * 64, "version": MARIN["version"]}, output) is Match.OTHER


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    put(tmp_path, {**MARIN, "format_version": FORMAT_VERSION + 1})
    with pytest.raises(RecordError, match=f"{tmp_path!s}.* has format version 2 .* Update this checkout"):
        read_record(str(tmp_path))


def test_a_record_that_is_no_object_is_refused(tmp_path: Path) -> None:
    put(tmp_path, ["a"])
    with pytest.raises(RecordError, match="is not a JSON object"):
        read_record(str(tmp_path))


def test_a_damaged_record_is_refused_by_its_path(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"name": "a')
    with pytest.raises(ValueError, match=f"{tmp_path!s}.* is not JSON"):
        read_record(str(tmp_path))
