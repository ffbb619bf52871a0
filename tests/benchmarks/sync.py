"""What it costs to bring a lost Dagster instance back: `marin sync`, in a process of its own.

    python tests/benchmarks/sync.py [OUTPUTS]

sync        seconds until Dagster knows 1,000 outputs that are complete in the store, with the start of the process;
            limit 20 s; and with nothing to do
vanished    seconds until they show as missing, when the store has lost them all
peer        Dagster's own `report_runless_asset_event` for as many events, one by one, with the same tags and metadata

The outputs are published by the store, as workers do it. Takes a minute or two.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import dagster as dg
from plan import fill_with_files, seconds, steps

from marin_assets.assets.sync.sync import materialization_of
from marin_assets.step.graph import build_graph
from marin_resources.configuration.settings import project_root
from marin_resources.storage.output.store import Store

OUTPUTS, LIMIT_S = 1000, 20.0
EXPERIMENT = "benchmark_of_sync"


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else OUTPUTS
    limit_s = LIMIT_S * count / OUTPUTS
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/prefix"
        fill_with_files(prefix, count)
        write_experiment(Path(folder), count)
        homes = [new_home(f"{folder}/{name}") for name in ("ours", "as-published")]
        before_s = cpu_s()
        sync_s = seconds(lambda: sync(folder, homes[0], prefix, f"Dagster knows {count} outputs more"))
        of_cpu_s = cpu_s() - before_s
        again_s = seconds(lambda: sync(folder, homes[0], prefix, "Dagster knows 0 outputs more"))
        peer_s = seconds(lambda: report_one_by_one(homes[1], prefix, count))
        for room in Path(prefix).iterdir():
            if not room.name.startswith("."):
                shutil.rmtree(room)
        vanished_s = seconds(lambda: sync(folder, homes[0], prefix, f"shows {count} outputs as missing"))
    print(
        f"sync      {sync_s:7.2f} s for {count} outputs, limit {limit_s:g} s ({of_cpu_s:.2f} s of the processor); "
        f"{again_s:.2f} s with nothing to do\n"
        f"vanished  {vanished_s:7.2f} s for {count} outputs, limit {limit_s:g} s\n"
        f"peer      {peer_s:7.2f} s for {count} events of Dagster's own, one by one: {peer_s / sync_s:.1f} times"
    )
    return 0 if max(sync_s, vanished_s) <= limit_s else 1


def cpu_s() -> float:
    """Of all processes that have ended. On a machine with other work it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_experiment(folder: Path, count: int) -> None:
    """A code location with these steps alone, for a process that starts with `marin_in`."""
    (folder / "experiments").mkdir()
    source = f"from plan import steps as benchmark_steps\n\ndef steps():\n    return benchmark_steps({count})\n"
    (folder / "experiments" / f"{EXPERIMENT}.py").write_text(source)
    begin = """
        import sys
        import marin_assets.experiments
        marin_assets.experiments.__path__ = [sys.argv.pop(1)]
        from marin_assets.cli.main import main
        raise SystemExit(main())
    """
    (folder / "marin_in.py").write_text(textwrap.dedent(begin))


def new_home(home: str) -> str:
    os.makedirs(home)
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    return home


def sync(folder: str, home: str, prefix: str, expected: str) -> None:
    words = [sys.executable, f"{folder}/marin_in.py", f"{folder}/experiments", "sync", "--prefix", prefix]
    places = (Path(__file__).parent, project_root())
    env = {**os.environ, "DAGSTER_HOME": home, "PYTHONPATH": os.pathsep.join(map(str, places))}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert expected in done.stdout, done.stdout + done.stderr


def report_one_by_one(home: str, prefix: str, count: int) -> None:
    (Path(home) / "dagster.yaml").write_text("")  # with Dagster's own event log
    store, graph = Store(prefix), build_graph(steps(count))
    looked = store.look(node.output for node in graph)
    os.environ["DAGSTER_HOME"] = home
    with dg.DagsterInstance.get() as instance:
        for node in graph:
            instance.report_runless_asset_event(materialization_of(node, looked[node.output]))


if __name__ == "__main__":
    raise SystemExit(main())
