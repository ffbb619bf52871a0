"""The worker in a process of the run's own Ray: timing, secrets and limits in the record."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from job_process import X
from record_fields import fields_of_record
from wheels import only_from, wheel

from marin_resources.hardware.resources import cpu, gpu
from marin_resources.ray_tpu.shards.job_allocation import shard_requirements
from marin_resources.ray_tpu.worker import progress_writer as noted_pace
from marin_resources.ray_tpu.worker.recorded_failure import recorded_failure
from marin_resources.ray_tpu.worker.run_task import run_task
from marin_resources.storage.files import read_bytes, write_bytes
from marin_resources.storage.lease import lease
from marin_resources.storage.output.attempts import log_path, read_attempt
from marin_resources.storage.output.notes.cost import cost_of
from marin_resources.storage.output.notes.progress import read_progress
from marin_resources.storage.output.status import read_status
from marin_resources.storage.output.store import Store
from marin_resources.storage.usage.usage import used
from marin_resources.types.output import Status
from marin_resources.types.record import Record
from marin_resources.wire.outcome import End, Outcome
from marin_resources.wire.task import Task


def task_of(prefix: str, fn: str, **fields: Any) -> Task:
    path = Store(prefix).locate(X)
    config = {"output_path": path}
    return Task(output=X, prefix=prefix, path=path, fn=fn, config=config, **fields)


def run(task: Task) -> Outcome:
    return Outcome.from_dict(run_task(task.to_dict()))


def record_of(prefix: str) -> dict[str, Any]:
    record = fields_of_record(Store(prefix).locate(X))
    assert record is not None
    return record


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "exp.py"
    path.write_text(
        "import os, time\n"
        "def show(config):\n"
        "    os.write(1, f\"token: {os.environ['LAB_TOKEN']}\\n\".encode())\n"
        "    from marin_resources.ray_tpu.shards.job_allocation import shard_requirements\n"
        "    return {'token': os.environ['LAB_TOKEN'], 'needs': list(shard_requirements().env)}\n"
        "def spill(config):\n"
        "    raise ValueError(f\"{os.environ['LAB_TOKEN']} is refused\")\n"
        "def nap(config):\n"
        "    time.sleep(0.2)\n"
        "def cancelled(config):\n"
        "    raise KeyboardInterrupt\n"
        "def work(config):\n"
        "    import subprocess, sys\n"
        "    end_s = time.process_time() + 0.2\n"
        "    while time.process_time() < end_s: pass\n"
        "    busy = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "    subprocess.run([sys.executable, '-c', busy], check=True)\n"
        "def fail_after_work(config):\n"
        "    end_s = time.process_time() + 0.2\n"
        "    while time.process_time() < end_s: pass\n"
        "    raise ValueError\n"
        "def step(config):\n"
        "    from marin_resources.step_api.progress import report_step\n"
        "    from marin_resources.storage.output.notes.progress import read_progress\n"
        "    step, seen = 0, None\n"
        "    while seen is None or not seen.steps_per_s:\n"
        "        step += 1\n"
        "        report_step(step)\n"
        "        time.sleep(0.01)\n"
        "        seen = read_progress(config['output_path'], 1)\n"
        "    return {'seen': seen.step}\n"
        "def hang(config):\n"
        "    print('hanging', flush=True)\n"
        "    time.sleep(60)\n"
    )
    return path


def test_the_record_reports_what_a_step_waited_for(disk_prefix: str, script: Path) -> None:
    submitted = (datetime.now(UTC) - timedelta(seconds=40)).isoformat()
    assert run(task_of(disk_prefix, f"{script}:nap", submitted_at=submitted)).end is End.SUCCESS
    timing = record_of(disk_prefix)["timing"]
    assert 40 <= timing["queue_s"] < 60
    assert 0 <= timing["setup_s"] < 20
    assert 0.2 <= timing["compute_s"] < 20
    assert "job" not in record_of(disk_prefix)


def test_the_record_says_what_the_step_has_spent_and_its_children(disk_prefix: str, script: Path) -> None:
    assert run(task_of(disk_prefix, f"{script}:fail_after_work")).end is End.FAILED
    failed = record_of(disk_prefix)["spent"]
    assert run(task_of(disk_prefix, f"{script}:work", attempt=2, resources=cpu(2))).end is End.SUCCESS
    cost = cost_of(Record.from_dict(record_of(disk_prefix)))
    assert cost.cpu_s is not None
    assert cost.wall_s is not None
    assert 0.65 <= cost.cpu_s < 10  # 0.2 of the failure, 0.2 here, 0.3 in a child
    assert failed["wall_s"] < cost.wall_s < failed["wall_s"] + 20
    assert cost.reserved_cpu_s == pytest.approx(2 * cost.wall_s - failed["wall_s"], abs=0.01)
    assert (cost.device_s, cost.pool, cost.unknown_attempts) == (0, None, 0)
    assert record_of(disk_prefix)["spent"]["attempts"] == 2


def test_steps_that_a_function_reports_are_noted_while_it_runs(
    disk_prefix: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_pace, "FIRST_NOTE_S", 0.05)
    monkeypatch.setattr(noted_pace, "EVERY_S", 0.05)
    assert run(task_of(disk_prefix, f"{script}:step", timeout_s=60)).end is End.SUCCESS
    pace = read_progress(Store(disk_prefix).locate(X), 1)
    assert pace is not None
    assert pace.step >= record_of(disk_prefix)["result"]["seen"] > 1


def test_a_submitters_clock_that_is_ahead_makes_no_negative_wait(disk_prefix: str, script: Path) -> None:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    run(task_of(disk_prefix, f"{script}:nap", submitted_at=ahead))
    assert record_of(disk_prefix)["timing"]["queue_s"] == 0


def test_of_a_function_that_is_never_reached_no_time_is_reported(disk_prefix: str, script: Path) -> None:
    assert run(task_of(disk_prefix, f"{script}:no_such_function")).end is End.FAILED
    assert record_of(disk_prefix)["timing"] == {"queue_s": None, "setup_s": None, "compute_s": None}


def test_a_step_sees_its_variables_and_leaves_none_of_them(
    disk_prefix: str, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "hunter2-hunter2")
    assert run(task_of(disk_prefix, f"{script}:show", env=("LAB_TOKEN",))).end is End.SUCCESS
    assert record_of(disk_prefix)["result"] == {"token": "***", "needs": ["LAB_TOKEN"]}
    assert Path(log_path(Store(disk_prefix).locate(X), 1)).read_text() == "token: ***\n"
    assert shard_requirements().env == ()


def test_an_error_is_reported_without_secrets(disk_prefix: str, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "hunter2-hunter2")
    outcome = run(task_of(disk_prefix, f"{script}:spill", env=("LAB_TOKEN",)))
    assert outcome.error == "ValueError: *** is refused"
    assert "hunter2" not in outcome.traceback
    left = [file.read_bytes() for file in Path(disk_prefix).rglob("*") if file.is_file()]
    assert not any(b"hunter2" in each for each in left)


def test_a_function_that_takes_too_long_has_noted_that_before_its_process_ends(disk_prefix: str, script: Path) -> None:
    task = task_of(disk_prefix, f"{script}:hang", timeout_s=0.3)
    worker = Path(__file__).parents[3] / "support" / "lone_worker.py"
    root = str(Path(__file__).parents[4])
    env = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, str(worker)], input=json.dumps(task.to_dict()), text=True, env=env, check=False
    )
    assert done.returncode == -9
    outcome = recorded_failure(task.path, 1)
    assert outcome is not None
    assert (outcome.end, outcome.error) == (End.FAILED, "the function took longer than its 0.3 s")
    assert "in hang" in outcome.traceback
    assert read_status(task.path) is Status.FAILED
    assert lease.holder_of(task.path) is None
    log = Path(log_path(task.path, 1)).read_text()
    assert log.startswith("hanging\n")
    assert "in hang" in log


def test_a_worker_that_ray_cancels_says_so_and_goes(disk_prefix: str, script: Path) -> None:
    task = task_of(disk_prefix, f"{script}:cancelled")
    with pytest.raises(KeyboardInterrupt):
        run(task)
    assert record_of(disk_prefix)["error"] == "stopped from outside"
    assert read_status(task.path) is Status.FAILED
    assert lease.holder_of(task.path) is None


def test_of_a_worker_that_was_killed_nothing_is_noted(disk_prefix: str) -> None:
    task = task_of(disk_prefix, "no:matter")
    assert recorded_failure(task.path, 1) is None
    claim = Store(disk_prefix).claim(X, attempt=1, resumable=False, run_id=None)
    claim.lease.release()
    assert recorded_failure(task.path, 1) is None


def test_packages_of_a_step_come_before_it(disk_prefix: str, tmp_path: Path) -> None:
    wheel(tmp_path / "index", "marin-tiny", "1.5")
    (tmp_path / "exp.py").write_text("def make(config):\n    import marin_tiny\n    return {'v': marin_tiny.version}\n")
    task = task_of(disk_prefix, f"{tmp_path}/exp.py:make", packages=("marin-tiny",))
    code = "import json, sys; from marin_resources.ray_tpu.worker.run_task import run_task; "
    code += "print(json.dumps(run_task(json.load(sys.stdin))))"
    env = {**os.environ, **only_from(tmp_path / "index", tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(task.to_dict()), text=True, env=env, capture_output=True
    )
    assert json.loads(done.stdout)["end"] == "success", done.stderr
    assert record_of(disk_prefix)["result"] == {"v": "1.5"}


def test_packages_that_cannot_be_had_are_a_failure_before_anything_is_claimed(
    disk_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index").mkdir()
    for name, value in only_from(tmp_path / "index", tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    outcome = run(task_of(disk_prefix, "no:matter", packages=("no-such-package",)))
    assert outcome.end is End.FAILED
    assert outcome.error.startswith("The packages 'no-such-package' cannot be installed")
    assert read_status(Store(disk_prefix).locate(X)) is None


def test_a_result_that_is_nested_too_deeply_is_left_out_with_a_sentence(disk_prefix: str, tmp_path: Path) -> None:
    (tmp_path / "exp.py").write_text(
        "def make(config):\n"
        "    deep = 1\n"
        "    for _ in range(900):\n"
        "        deep = {'a': [deep]}\n"
        "    return {'deep': deep, 'words': 5}\n"
    )
    outcome = run(task_of(disk_prefix, f"{tmp_path}/exp.py:make"))
    assert outcome.end is End.SUCCESS
    assert record_of(disk_prefix)["result"] == {"words": 5}
    log = read_bytes(log_path(Store(disk_prefix).locate(X), 1)).decode()
    assert "result['deep'] is nested more than 100 levels deep. It is left out of the record." in log


def test_of_an_error_that_is_a_sentence_no_traceback_is_printed(
    disk_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "exp.py").write_text(
        "from marin_resources.types.errors import MarinError\n"
        "def make(config):\n"
        "    raise MarinError('The roof is open. Close it.')\n"
    )
    outcome = run(task_of(disk_prefix, f"{tmp_path}/exp.py:make"))
    assert outcome.error == "MarinError: The roof is open. Close it."
    assert capsys.readouterr().out == f"{outcome.error}\n"
    assert "in make" in read_attempt(Store(disk_prefix).locate(X), 1)["traceback"]


def test_a_fifo_in_the_output_fails_the_step_at_once(disk_prefix: str, tmp_path: Path) -> None:
    (tmp_path / "exp.py").write_text("import os\ndef make(config):\n    os.mkfifo(config['output_path'] + '/pipe')\n")
    outcome = run(task_of(disk_prefix, f"{tmp_path}/exp.py:make", timeout_s=200))
    assert (outcome.end, outcome.traceback) == (End.FAILED, "")
    path = Store(disk_prefix).locate(X)
    assert outcome.error.startswith(f"'{path}/pipe' is a FIFO (a named pipe). An output holds regular files")
    assert read_status(path) is Status.FAILED


def test_a_damaged_control_file_fails_a_claim_in_one_sentence_without_a_traceback(
    disk_prefix: str, script: Path
) -> None:
    path = Store(disk_prefix).locate(X)
    Path(path, ".executor_status").mkdir(parents=True)
    outcome = run(task_of(disk_prefix, f"{script}:nap"))
    assert (outcome.end, outcome.traceback) == (End.FAILED, "")
    assert outcome.error == f"The control file '{path}/.executor_status' is a folder, expected a file. Move it aside."


def test_a_damaged_mark_records_no_failure(tmp_path: Path) -> None:
    write_bytes(f"{tmp_path}/.marin/attempts/1.json", b"[]")
    assert recorded_failure(str(tmp_path), 1) is None


def test_what_a_step_holds_is_entered_for_budgets(disk_prefix: str, script: Path) -> None:
    began = datetime.now(UTC)
    task = task_of(disk_prefix, f"{script}:nap", resources=gpu("H100", 4), run_id="r1")
    assert run(task).end is End.SUCCESS
    [found] = used(disk_prefix, began, datetime.now(UTC))
    assert (found.entry.step, found.entry.pool, found.entry.run_id) == (X.label, "gpu_H100", "r1")
    assert (found.ended, found.moved_bytes) == (True, 0)
    assert 4 * 0.2 / 3600 <= found.hours < 4 * 20 / 3600


def test_a_step_that_reads_other_regions_is_entered_too(disk_prefix: str, script: Path) -> None:
    task = task_of(disk_prefix, f"{script}:nap")
    task = dataclasses.replace(task, config={**task.config, "words": "mirror://words"})
    assert run(task).end is End.SUCCESS
    [found] = used(disk_prefix, datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC))
    assert (found.entry.pool, found.entry.moved_bytes, found.hours) == (None, 0, 0)


def test_a_step_on_a_cpu_is_not_entered(disk_prefix: str, script: Path) -> None:
    assert run(task_of(disk_prefix, f"{script}:nap")).end is End.SUCCESS
    assert not Path(disk_prefix, ".marin/usage").exists()
