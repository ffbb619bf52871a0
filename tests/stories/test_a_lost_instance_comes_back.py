"""Dagster's home is lost. `marin sync` brings it back from the store, however often it is killed, and nothing runs."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from dagster_homes import new_home
from running import ROOT, start_script

from marin_assets.assets.assemble import definitions_of
from marin_assets.assets.factory import asset_key
from marin_assets.step.graph import Graph, build_graph
from marin_assets.step.step import Step

pytestmark = pytest.mark.long

COUNT, AT_ONCE = 24, 5
EXPERIMENT = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests/support")!r})
from toy_steps import toy
from marin_assets import executor_main

def steps():
    root = toy("root")
    return [root, *(toy(f"s{{i}}", reads=root, value=i) for i in range({COUNT - 1}))]

if __name__ == "__main__":
    executor_main(steps())
"""
MARIN = f"""
import os, signal, sys
import dagster as dg
import marin_assets.experiments
from marin_assets.assets.sync import missing_outputs, sync
from marin_assets.cli.main import main

marin_assets.experiments.__path__ = [sys.argv[1]]
sync.AT_ONCE = missing_outputs.AT_ONCE = {AT_ONCE}
left, report = int(sys.argv[2]), dg.DagsterInstance.report_dagster_event

def report_or_die(self, *given, **named):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return report(self, *given, **named)

dg.DagsterInstance.report_dagster_event = report_or_die
raise SystemExit(main(["sync"]))
"""
FOR_EVER = 10**9


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "marin_in.py").write_text(MARIN)
    script = tmp_path / "experiments/lost.py"
    script.write_text(EXPERIMENT)
    return script


def steps() -> list[Step]:
    from toy_steps import toy

    root = toy("root")
    return [root, *(toy(f"s{i}", reads=root, value=i) for i in range(COUNT - 1))]


def start_sync(experiment: Path, events: int = FOR_EVER) -> subprocess.Popen[str]:
    """A process that is killed before its event of this number."""
    words = [sys.executable, str(experiment.parents[1] / "marin_in.py"), str(experiment.parent), str(events)]
    return subprocess.Popen(words, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def sync(experiment: Path) -> str:
    process = start_sync(experiment)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out


def sync_and_be_killed(experiment: Path, events: int) -> None:
    process = start_sync(experiment, events)
    process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL


def run(experiment: Path) -> str:
    done = start_script(experiment, env={})
    output, _ = done.communicate(timeout=900)
    assert done.returncode == 0, output
    return str(output)


def shown(graph: Graph) -> list[str]:
    """What the UI shows of each asset, and that those that are there have their metadata."""
    assets = definitions_of(graph, {}).resolve_asset_graph()
    with dg.DagsterInstance.get() as instance:
        resolver = CachingStaleStatusResolver(instance, assets, LoadingContextForTest(instance))
        found = [resolver.get_status(asset_key(node)).value for node in graph]
        newest = [instance.get_latest_materialization_event(asset_key(node)) for node in graph]
    made = [event.asset_materialization for event in newest if event is not None]
    assert all(each is not None and {"path", "value"} <= each.metadata.keys() for each in made)
    assert [event is not None for event in newest] == [status != "MISSING" for status in found]
    return found


def test_a_lost_instance_shows_every_output_again_and_nothing_runs(
    experiment: Path, prefix: Path, dagster_home: Path
) -> None:
    graph = build_graph(steps())
    assert f"{COUNT} computed, 0 reused, 0 failed" in run(experiment)
    shutil.rmtree(dagster_home)
    new_home(dagster_home)
    assert shown(graph) == ["MISSING"] * COUNT

    sync_and_be_killed(experiment, events=AT_ONCE + 3)  # in the middle of the second batch
    known = shown(graph).count("FRESH")
    assert AT_ONCE <= known < COUNT
    assert f"Dagster knows {COUNT - known} outputs more" in sync(experiment)
    assert shown(graph) == ["FRESH"] * COUNT
    assert f"0 computed, {COUNT} reused, 0 failed" in run(experiment)
    with dg.DagsterInstance.get() as instance:
        assert instance.get_runs() == []

    for node in list(graph)[1:9]:
        shutil.rmtree(prefix / node.output.relative())
    sync_and_be_killed(experiment, events=3)
    assert "shows 5 outputs as missing" in sync(experiment)  # the third was wiped, and only its event is not told
    assert shown(graph) == ["FRESH"] + ["MISSING"] * 8 + ["FRESH"] * (COUNT - 9)
    assert f"8 computed, {COUNT - 8} reused, 0 failed" in run(experiment)
    assert "Dagster knows 0 outputs more" in sync(experiment)
    assert shown(graph) == ["FRESH"] * COUNT


def test_two_at_once_do_no_harm(experiment: Path, prefix: Path, dagster_home: Path) -> None:
    graph = build_graph(steps())
    run(experiment)
    shutil.rmtree(dagster_home)
    new_home(dagster_home)
    gone = list(graph)[-1]
    for lost in (False, True):
        if lost:
            shutil.rmtree(prefix / gone.output.relative())
        both = [start_sync(experiment) for _ in range(2)]
        for process in both:
            _, err = process.communicate(timeout=600)
            assert process.returncode == 0, err
        assert shown(graph) == ["FRESH"] * (COUNT - 1) + ["MISSING" if lost else "FRESH"]
