"""An experiment's process: what it says, how it ended, and that nothing of it is left."""

from __future__ import annotations

import glob
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from process_shapes import alive
from running import ROOT, start_script, wait_until

from marin_sensors.experiment_process.process import Module, find_module, run_experiment

SUPPORT = str(ROOT / "tests" / "support")
LEAVES_ALL_SHAPES = """
import sys, time
sys.path.insert(0, {support!r})
from process_shapes import start_all

start_all({folder!r}, {token!r})
print("1 computed, 0 reused, 0 failed", flush=True)
if {stays}:
    time.sleep(600)
"""
OF_A_RUN = """
import sys
sys.path[:0] = [{folder!r}, {root!r}]
from marin_sensors.experiment_process.process import find_module, run_experiment

run_experiment(find_module({module!r}), [], 600, grace_s=1)
"""

Write = Callable[[str], Module]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module with this code. No folder of it is left in the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    homes = tmp_path / "homes"
    homes.mkdir()
    monkeypatch.setenv("TMPDIR", str(homes))
    monkeypatch.setattr(tempfile, "tempdir", None)

    def write(code: str) -> Module:
        name = f"toy_experiment_{uuid.uuid4().hex[:8]}"
        (tmp_path / f"{name}.py").write_text(code)
        return find_module(name)

    yield write
    assert list(homes.iterdir()) == []


def test_its_lines_come_through_and_its_counts_are_added(
    module: Write, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = """
import os, sys
print(sys.argv[1:], os.environ["MARIN_PREFIX"])
print("2 computed, 1 reused, 0 failed", file=sys.stderr)
print("12:00:00 3 computed, 1 reused, 0 failed of something else")
print("1 computed, 4 reused, 0 failed")
print(os.listdir(os.environ["DAGSTER_HOME"]), file=sys.stderr)
sys.exit(3)
"""
    monkeypatch.setenv("MARIN_PREFIX", "here")
    ended = run_experiment(module(said), ["--prefix", "there"], 60)
    assert (ended.code, ended.computed, ended.reused) == (3, 3, 5)
    assert ended.last_lines[0] == "['--prefix', 'there'] here"
    assert ended.last_lines[-1] == "[]", "a home of its own"
    assert capfd.readouterr().out.splitlines() == list(ended.last_lines)
    assert ended.took_s < 30


def test_one_that_prints_no_counts_has_none(module: Write) -> None:
    ended = run_experiment(module("print('all is well')"), [], 60)
    assert (ended.code, ended.computed, ended.reused, ended.last_lines) == (0, None, None, ("all is well",))


def test_only_the_last_lines_are_kept(module: Write) -> None:
    ended = run_experiment(module("for n in range(10_000): print(n)"), [], 60)
    assert ended.last_lines == tuple(map(str, range(9960, 10_000)))


def test_at_its_time_limit_it_is_told_to_stop_as_by_ctrl_c(module: Write) -> None:
    code = """
import time
try:
    print("begun", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("put away")
"""
    ended = run_experiment(module(code), [], 2)
    assert ended.code is None
    assert ended.last_lines == ("begun", "put away")
    assert ended.took_s < 30


@pytest.mark.long
@pytest.mark.parametrize("stays", [False, True], ids=["it ends", "it is stopped"])
def test_nothing_that_it_started_is_left(stays: bool, module: Write, tmp_path: Path) -> None:
    folder, token = tmp_path / "pids", f"token-{uuid.uuid4().hex}"
    folder.mkdir()
    name = module(LEAVES_ALL_SHAPES.format(support=SUPPORT, folder=str(folder), token=token, stays=stays))
    ended = run_experiment(name, [], 20, grace_s=1)
    assert (ended.code, ended.computed) == (None if stays else 0, 1)
    assert alive(folder, token) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_the_process_of_its_run(number: signal.Signals, module: Write, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, pathlib, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)"
    script = tmp_path / "of_a_run.py"
    script.write_text(OF_A_RUN.format(folder=str(tmp_path), root=str(ROOT), module=module(code).name))
    run = start_script(script, env={})
    experiment = psutil.Process(wait_until(lambda: pid.exists() and int(pid.read_text() or 0), "the experiment"))
    run.send_signal(number)
    try:
        run.communicate(timeout=60)
    except subprocess.TimeoutExpired:  # what it blocks and ignores
        raise AssertionError(Path(f"/proc/{run.pid}/status").read_text()) from None
    wait_until(lambda: not experiment.is_running(), "the end of the experiment")
    wait_until(lambda: not glob.glob(f"{tmp_path}/homes/*"), "the removal of its home")


def test_a_module_is_imported_from_where_this_process_has_it(module: Write, tmp_path: Path) -> None:
    assert find_module(module("").name).folder == str(tmp_path)
    assert find_module("marin_assets.experiments.quickstart").folder == str(ROOT)
    assert find_module("marin_assets.stages").folder == str(ROOT)
    for name in ("nothing_of_this_name", "marin_assets.experiments.quikstart", "no.such.package", ""):
        with pytest.raises(ModuleNotFoundError, match=f"There is no module {name!r}. Name that of an experiment"):
            find_module(name)


def test_the_companion_starts_without_dagster() -> None:
    code = "import sys, marin_sensors.experiment_process.parent; print('dagster' in sys.modules, 'ray' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "False False\n"
