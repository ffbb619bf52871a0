"""The way through the code that docs/explanation/one-materialization.md lists is the real one."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cluster_runs import env_for
from dagster_dev import dagster_dev
from hops import Call, Table, first_missing, noting, read_calls, read_ways
from pages import ROOT
from ray_cluster import Cluster
from running import wait_until

PAGE = ROOT / "docs/explanation/one-materialization.md"
WAYS = read_ways(PAGE.read_text())
HOPS = [hop for tables in WAYS.values() for table in tables for hop in table.hops]
SLICE = "v4-16"
HOSTS = 2
SCRIPT = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from partition_steps import part
from toy_steps import toy
from marin_assets import executor_main, static, tpu

if __name__ == "__main__":
    executor_main([{step}])
"""
PARTITIONS = "part('two', static('a', 'b'), Path(__file__).with_name('keys.txt'))"


def defined_in(file: Path) -> Iterator[str]:
    """The names of its functions and methods, as "function" and "Class.method"."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, kinds):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{method.name}" for method in node.body if isinstance(method, kinds))


def test_each_hop_is_a_function_of_its_file() -> None:
    assert set(WAYS) == {
        "A script on one machine",
        "A click on Materialize",
        "Partitions",
        "A job on a cluster",
        "Small steps on a cluster",
        "A step on slices",
    }
    for hop in HOPS:
        assert hop.function in set(defined_in(ROOT / hop.file)), f"{hop.file} has no {hop.function}"


def test_each_row_of_a_table_of_hops_is_read() -> None:
    page = PAGE.read_text()
    tables = re.findall(r"<!-- hops: [\w ]+ -->\n\|.*\n\|-.*\n((?:\|.*\n)+)", page)
    rows = sum(len(table.rows) for tables in WAYS.values() for table in tables)
    assert (
        rows == sum(table.count("\n") for table in tables) == len(re.findall(r"^\| [A-Z]?\d+ \|", page, re.MULTILINE))
    )


def require_way(title: str, calls: list[Call]) -> None:
    """The calls follow the tables, and would not follow them with two neighbouring rows exchanged."""
    tables = WAYS[title]
    assert first_missing(tables, calls) == ""
    for number, table in enumerate(tables):
        for row in range(len(table.rows) - 1):
            exchanged = [*tables[:number], with_exchanged_rows(table, row), *tables[number + 1 :]]
            assert first_missing(exchanged, calls), f"{title!r}: {table.rows[row]} may change places with the next row"


def with_exchanged_rows(table: Table, row: int) -> Table:
    rows = list(table.rows)
    rows[row : row + 2] = reversed(rows[row : row + 2])
    return replace(table, rows=tuple(rows))


def processes(calls: list[Call], name: str) -> set[int]:
    return {call.pid for call in calls if call.process == name}


def run(folder: Path, env: dict[str, str], *words: str, after: int = 0) -> list[Call]:
    """Run a script to its end; the calls that its processes have noted in the folder since the first `after`."""
    command = [sys.executable, *words]
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read_calls(folder, after)


def write_script(folder: Path, step: str) -> str:
    script = folder / "experiment.py"
    script.write_text(SCRIPT.format(support=str(ROOT / "tests/support"), step=step))
    return str(script)


def test_a_script_on_one_machine(tmp_path: Path, prefix: Path, dagster_home: Path) -> None:
    module = "marin_assets.experiments.two_steps"
    calls = run(tmp_path, noting(module, HOPS, tmp_path), "-m", module, "--select", "data")
    require_way("A script on one machine", calls)
    assert len(processes(calls, "the run")) == len(processes(calls, "the worker")) == 1


@pytest.mark.long
def test_partitions(tmp_path: Path, prefix: Path, dagster_home: Path) -> None:
    script = write_script(tmp_path, PARTITIONS)
    calls = run(tmp_path, noting(script, HOPS, tmp_path), script)
    require_way("Partitions", calls)
    of_a_key = [hop for table in WAYS["Partitions"] if table.process == "the worker" for hop in table.hops]
    for hop in of_a_key:
        assert sum(call.hop == hop and call.process == "the worker" for call in calls) == 2, hop


def test_a_call_that_is_missing_or_too_early_is_found() -> None:
    tables = WAYS["A script on one machine"]
    calls = [Call(1, table.process, hop) for table in tables for hop in table.hops]
    assert first_missing(tables, calls) == ""
    for place, call in enumerate(calls[1:], 1):
        without = [each for each in calls if each is not call]
        name = f"{call.hop.function} of {call.hop.file}"
        assert first_missing(tables, without) == f"{name} is not called in {call.process}"
        first = [call, *without] if call.process == calls[0].process else [*without, call]
        assert "is called too early" in first_missing(tables, first), place


@pytest.mark.long
def test_a_click(tmp_path: Path, prefix: Path, dagster_home: Path) -> None:
    env = noting("", HOPS, tmp_path)
    with dagster_dev(ROOT / "workspace.yaml", tmp_path / "dev.log", env) as dev:
        run_id = dev.launch("two_steps/data")
        wait_until(lambda: dev.status(run_id) in ("SUCCESS", "FAILURE"), "the run", timeout_s=200)
        assert dev.status(run_id) == "SUCCESS", dev.messages(run_id)
    require_way("A click on Materialize", read_calls(tmp_path))


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the processes of the cluster note their calls."""
    return tmp_path_factory.mktemp("noted")


@pytest.fixture(scope="module")
def noting_cluster(noted: Path) -> Iterator[Cluster]:
    """A cluster with a slice, whose processes note their calls."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in noting("experiment.py", HOPS, noted).items():
            patch.setenv(name, value)
        with Cluster(cpus=2) as cluster:
            cluster.add_slice(SLICE, "a")
            yield cluster


@pytest.mark.long
@pytest.mark.parametrize(
    ("title", "step"),
    [
        ("A job on a cluster", "toy('job', own_job=True)"),
        ("Small steps on a cluster", "toy('small', own_job=False)"),
        ("A step on slices", f"toy('sliced', resources=tpu({SLICE!r}))"),
    ],
)
def test_a_cluster(
    title: str, step: str, tmp_path: Path, prefix: Path, dagster_home: Path, noting_cluster: Cluster, noted: Path
) -> None:
    before = len(read_calls(noted))
    env = {**env_for(prefix, dagster_home, noting_cluster), **noting("experiment.py", HOPS, noted)}
    calls = run(noted, env, write_script(tmp_path, step), after=before)
    require_way(title, calls)
    for table in WAYS[title]:
        pids = processes(calls, table.process)
        assert len(pids) == (HOSTS if table.process == "a host" else 1)
        if table.process == "a host":
            for pid in pids:
                assert first_missing([table], [call for call in calls if call.pid == pid]) == ""
