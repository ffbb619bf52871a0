"""Hand-written assets beside steps: their values are stored and loaded at the same kind of path."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from running import run_job
from toy_steps import toy

from marin_assets.assets.assemble import resources
from marin_assets.assets.factory import build_assets
from marin_assets.step.graph import build_graph
from marin_resources.dagster_fixes.console import failure_sentence, short_console
from marin_resources.orchestrator.executor import marin_executor
from marin_resources.storage.files import sizes_below
from marin_resources.storage.output.attempts import latest_attempt
from marin_resources.storage.paths import join


def run(instance: dg.DagsterInstance, *assets: dg.AssetsDefinition, only: str = "*"):
    definitions = dg.Definitions(
        assets=assets,
        jobs=[dg.define_asset_job("job", only)],
        executor=marin_executor,
        resources=resources(),
        loggers={"console": short_console},
    )
    return run_job(definitions, "job", instance)


def iter_outputs(prefix: str, start: str) -> Iterator[str]:
    names = {name.partition("/")[0] for name in sizes_below(prefix)}
    return (join(prefix, name) for name in names if name.startswith(start))


def sentences(result) -> list[str]:
    return [failure_sentence(event) for event in result.all_events if event.is_step_failure]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"a": [1, 2.5, None]}, id="json"),
        pytest.param(b"\x00\xff", id="bytes", marks=pytest.mark.long),
        pytest.param("text ☃", id="text", marks=pytest.mark.long),
        pytest.param(pa.table({"x": [1, 2]}), id="arrow"),
        pytest.param("pandas", id="pandas", marks=pytest.mark.long),
    ],
)
def test_a_value_comes_back_as_it_was(instance: dg.DagsterInstance, prefix: Path, value: object) -> None:
    if value == "pandas":
        import pandas as pd

        value = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    seen: list[object] = []

    @dg.asset(code_version="1", key=["notes", "value"])
    async def written():
        return value

    @dg.asset(code_version="1", ins={"value": dg.AssetIn(key=["notes", "value"])})
    async def reader(value) -> str:
        seen.append(value)
        return "read"

    assert run(instance, written, reader).success
    assert seen[0].equals(value) if hasattr(value, "equals") else seen[0] == value
    [folder] = (prefix / "notes").iterdir()
    assert folder.name.startswith("value-")
    assert (folder / ".executor_status").read_text() == "SUCCESS"


def test_a_value_is_stored_in_a_bucket_and_read_from_it(
    instance: dg.DagsterInstance, gcs_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIN_PREFIX", gcs_prefix)
    seen: list[object] = []

    @dg.asset(code_version="1")
    async def written():
        return {"a": 1}

    @dg.asset(code_version="1")
    async def reader(written) -> str:
        seen.append(written)
        return "read"

    assert run(instance, written, reader).success
    assert run(instance, written, reader).success
    assert seen == [{"a": 1}, {"a": 1}]
    assert latest_attempt(next(iter_outputs(gcs_prefix, "written-"))) == 1


def test_a_reader_of_a_step_gets_its_path(instance: dg.DagsterInstance, prefix: Path, shared_ray: None) -> None:
    seen: list[str] = []
    step = toy("a")

    @dg.asset(code_version="1", ins={"a": dg.AssetIn(key=["toy", "a"])})
    async def reader(a: str) -> str:
        seen.append(Path(a, "value.txt").read_text())
        return a

    assert run(instance, *build_assets(build_graph([step])), reader).success
    assert seen == ["1"]


def test_a_value_is_read_in_a_later_run(instance: dg.DagsterInstance, prefix: Path) -> None:
    seen: list[int] = []

    @dg.asset(code_version="1")
    async def number() -> int:
        return 7

    @dg.asset(code_version="1")
    async def reader(number: int) -> int:
        seen.append(number)
        return number

    assert run(instance, number, reader, only="number").success
    assert run(instance, number, reader, only="reader").success
    assert seen == [7]


def test_a_value_that_is_not_there_is_named(instance: dg.DagsterInstance, prefix: Path) -> None:
    @dg.asset(code_version="1")
    async def number() -> int:
        return 7

    @dg.asset(code_version="1")
    async def reader(number: int) -> int:
        return number

    [sentence] = sentences(run(instance, number, reader, only="reader"))
    assert "Asset 'number' is read" in sentence
    assert "Materialize it first" in sentence


def test_an_asset_without_a_code_version_is_refused_with_what_to_do(instance: dg.DagsterInstance, prefix: Path) -> None:
    @dg.asset
    async def number() -> int:
        return 7

    [sentence] = sentences(run(instance, number))
    assert "Asset 'number' has no code_version" in sentence


def test_another_value_for_the_same_version_is_refused_and_the_first_stays(
    instance: dg.DagsterInstance, prefix: Path
) -> None:
    values = iter([1, 1, 2])

    @dg.asset(code_version="1")
    async def number() -> int:
        return next(values)

    assert run(instance, number).success
    assert run(instance, number).success
    [sentence] = sentences(run(instance, number))
    assert "another value" in sentence
    [stored] = prefix.glob("number-*/value.json")
    assert stored.read_text() == "1"


def test_a_change_upstream_gives_a_value_another_path(
    instance: dg.DagsterInstance, prefix: Path, shared_ray: None
) -> None:
    def reader_of(step_value: int) -> list[dg.AssetsDefinition]:
        @dg.asset(code_version="1", ins={"a": dg.AssetIn(key=["toy", "a"])})
        async def reader(a: str) -> str:
            return Path(a, "value.txt").read_text()

        return [*build_assets(build_graph([toy("a", value=step_value)])), reader]

    for value in (1, 2):
        assert run(instance, *reader_of(value)).success
    assert sorted(path.read_text() for path in prefix.glob("reader-*/value.txt")) == ["1", "2"]
