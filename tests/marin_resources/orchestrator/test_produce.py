"""The way of one output, against a real store and the real local Ray."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import toy_steps
from running import alive, logged, wait_until
from toy_steps import calls, toy

from marin_assets import InputName, Step, gpu
from marin_assets.assets.body.request import build_request
from marin_assets.step.graph import build_graph
from marin_resources.orchestrator.produce import Produced, ProduceError, RunCallbacks, produce
from marin_resources.ray_tpu.environment.extras import MissingRequirementError
from marin_resources.ray_tpu.local.backend import LocalBackend
from marin_resources.ray_tpu.ray_options import UnmeetableError
from marin_resources.storage.collect.purge import purge
from marin_resources.storage.collect.withdraw import Terms, withdraw
from marin_resources.storage.output.notes.collection import remove_collected
from marin_resources.storage.output.status import read_status
from marin_resources.storage.output.store import Store
from marin_resources.types.output import Status
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.task import Task


@pytest.fixture(scope="module")
def backend(shared_ray: None) -> Iterator[LocalBackend]:
    backend = LocalBackend(cpus=2)
    yield backend
    backend.shutdown()


class Orchestrator:
    """Produces steps in an event loop of its own, as a run does, and keeps what was said."""

    def __init__(self, prefix: Path, backend: LocalBackend) -> None:
        self.store, self.backend = Store(str(prefix)), backend
        self.said: list[str] = []
        self.log: list[str] = []

    def produce(self, step: Step, **options: Any) -> Produced:
        return asyncio.run(self.produce_async(step, **options))

    async def produce_async(self, step: Step, **options: Any) -> Produced:
        graph = build_graph([step])
        request = build_request(graph[step], graph, self.store, "run-1")
        return await produce(
            request,
            self.store,
            lambda: self.backend,
            callbacks=RunCallbacks(log=self.said.append, on_log=self.log.append),
            **options,
        )


@pytest.fixture
def orchestrator(prefix: Path, backend: LocalBackend) -> Orchestrator:
    return Orchestrator(prefix, backend)


def test_an_output_is_made_once_and_then_reused_without_a_back_end(orchestrator: Orchestrator, prefix: Path) -> None:
    step = toy("a")
    first = orchestrator.produce(step)
    orchestrator.backend = None  # type: ignore[assignment]
    second = orchestrator.produce(toy("a", note="changed, and not versioned"))
    assert (first.reused, second.reused) == (False, True)
    assert len(calls(prefix)) == 1
    assert second.observed.result == {"value": 1}


def test_the_record_says_who_made_it_from_what(orchestrator: Orchestrator) -> None:
    a = toy("a")
    b = toy("b", reads=a)
    orchestrator.produce(a)
    path = orchestrator.produce(b).observed.path
    record = json.loads(Path(path, ".executor_info").read_text())
    assert record["config"]["output_path"] == path
    assert record["dependencies"] == [record["config"]["input_path"]]
    assert record["version"]["dependencies"][0]["name"] == "toy/a"
    assert record["fn_name"] == "toy_steps:make"
    assert record["environment"]["lock_digest"]
    assert record["dagster_run_id"] == "run-1"
    assert record["duration_s"] >= 0
    assert record["manifest"]["files"] == 1


def test_what_a_step_prints_is_in_its_log_and_passed_on(orchestrator: Orchestrator) -> None:
    path = orchestrator.produce(toy("loud", toy_steps.wait_with_a_child)).observed.path
    assert any(line.startswith("child ") for line in orchestrator.log)
    assert "waiting in process" in Path(path, ".marin/attempts/1.log").read_text()


def test_a_failing_function_gives_a_sentence_and_its_own_traceback(orchestrator: Orchestrator) -> None:
    with pytest.raises(ProduceError, match=r"Step 'toy/bad' failed: ValueError: the value 1 is not liked") as raised:
        orchestrator.produce(toy("bad", toy_steps.fail))
    assert raised.value.traceback.count("File ") == 1
    assert "in fail" in raised.value.traceback
    assert "worker.py" not in raised.value.traceback


@pytest.mark.parametrize("value", [0, 1])
def test_a_function_that_removes_its_own_folder_has_failed(
    orchestrator: Orchestrator, prefix: Path, value: int
) -> None:
    with pytest.raises(ProduceError, match="was removed while the function ran, and the mark of attempt 1") as raised:
        orchestrator.produce(toy("tidy", toy_steps.remove_own_folder, value=value))
    assert "A function may remove only what it has written itself" in str(raised.value)
    assert len(calls(prefix)) == 1


def test_a_lease_that_is_removed_each_time_ends_in_a_sentence(orchestrator: Orchestrator, prefix: Path) -> None:
    with pytest.raises(ProduceError, match="was computed 3 times, and no other writer has the output") as raised:
        orchestrator.produce(toy("careless", toy_steps.remove_own_lease))
    assert "executor_status.lock' was removed or replaced while it was held" in str(raised.value)
    assert len(calls(prefix)) == 3


def test_a_function_that_exits_has_failed(orchestrator: Orchestrator) -> None:
    with pytest.raises(ProduceError, match="Step 'toy/exit' failed: SystemExit: not today"):
        orchestrator.produce(toy("exit", toy_steps.call_exit))


def test_a_failed_step_runs_again(orchestrator: Orchestrator, prefix: Path) -> None:
    step = toy("bad", toy_steps.fail)
    for _ in range(2):
        with pytest.raises(ProduceError):
            orchestrator.produce(step)
    assert len(calls(prefix)) == 2


@pytest.mark.parametrize("fn", [toy_steps.return_nonsense, toy_steps.return_much, toy_steps.return_text])
def test_a_step_that_has_worked_is_complete_whatever_it_returns(
    orchestrator: Orchestrator, fn: Callable[[toy_steps.ToyConfig], object]
) -> None:
    made = orchestrator.produce(toy("odd", fn))
    assert made.observed.done
    assert made.observed.result == {}


class Collecting:
    """A back end beside which marin gc takes each output that has just been published, so many times."""

    def __init__(self, backend: LocalBackend, store: Store, *, times: int, purged: bool, noted: bool = True) -> None:
        self._backend, self._store = backend, store
        self._times, self._purged, self._noted = times, purged, noted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def wait(self, handle: Any, on_log: Callable[[str], None]) -> Outcome:
        outcome = await self._backend.wait(handle, on_log)
        for output in [self._output] if self._times else []:
            self._times -= 1
            note = withdraw(self._store, output, Terms(by="eve", grace=timedelta(0)))
            if self._purged:
                purge(self._store, note)
            elif not self._noted:
                remove_collected(self._store.prefix, note)
        return outcome

    async def submit(self, task: Task, *more: Any) -> Any:
        self._output = task.output
        return await self._backend.submit(task, *more)


@pytest.mark.parametrize("purged", [False, True])
def test_an_output_that_gc_takes_right_after_it_was_published_comes_back(
    orchestrator: Orchestrator, prefix: Path, purged: bool
) -> None:
    orchestrator.backend = Collecting(orchestrator.backend, orchestrator.store, times=1, purged=purged)  # type: ignore[assignment]
    produced = orchestrator.produce(toy("a"))
    assert (produced.observed.done, produced.reused) == (True, False)
    who = "removed since, by marin gc" if purged else "collected since by marin gc of eve"
    assert any(line.startswith(f"toy/a: complete, and {who}") for line in orchestrator.said)
    assert len(calls(prefix)) == (2 if purged else 1)


@pytest.mark.parametrize(("times", "noted"), [(9, True), (1, False)])
def test_an_output_that_is_taken_each_time_or_by_nobody_known_ends_in_a_sentence(
    orchestrator: Orchestrator, prefix: Path, times: int, noted: bool
) -> None:
    backend = Collecting(orchestrator.backend, orchestrator.store, times=times, purged=noted, noted=noted)
    orchestrator.backend = backend  # type: ignore[assignment]
    with pytest.raises(ProduceError, match=r"Step 'toy/a' reported success and '.*' has no status\. Someone else"):
        orchestrator.produce(toy("a"))
    assert len(calls(prefix)) == (3 if noted else 1)


def test_a_missing_input_is_named_before_anything_starts(orchestrator: Orchestrator, prefix: Path) -> None:
    with pytest.raises(ProduceError, match=r"Step 'toy/b' needs 'toy/a' \(.*toy/a-.*\), which is not complete"):
        orchestrator.produce(toy("b", reads=toy("a")))
    assert calls(prefix) == []


def test_a_missing_hardcoded_path_is_named(orchestrator: Orchestrator) -> None:
    with pytest.raises(ProduceError, match=r"needs '.*raw/nowhere-123456', which is not complete"):
        orchestrator.produce(toy("b", reads=InputName.hardcoded("raw/nowhere-123456")))


def test_a_missing_extra_is_named_with_the_command_that_brings_it(orchestrator: Orchestrator) -> None:
    with pytest.raises(
        MissingRequirementError, match=r"Step 'toy/v' needs vllm, .*\.venv-vllm .*uv sync .*--extra vllm"
    ):
        orchestrator.produce(toy("v", extras=("vllm",)))


def test_an_unset_variable_is_named(orchestrator: Orchestrator) -> None:
    with pytest.raises(MissingRequirementError, match="Step 'toy/e' requires the variable 'TOY_TOKEN'"):
        orchestrator.produce(toy("e", env=("TOY_TOKEN",)))


def test_an_impossible_resource_fails_at_once_with_what_there_is(orchestrator: Orchestrator) -> None:
    with pytest.raises(UnmeetableError, match=r"Step 'toy/g' requests 1 CPU, 8 GPU, .*GPU 8 requested, 0 at most"):
        orchestrator.produce(toy("g", resources=gpu(count=8)))


def test_a_step_whose_worker_dies_is_tried_again(orchestrator: Orchestrator, tmp_path: Path, prefix: Path) -> None:
    produced = orchestrator.produce(toy("mortal", toy_steps.die_once, gate=str(tmp_path / "marker")))
    assert produced.lost_workers == 1
    assert not produced.reused
    assert len(calls(prefix)) == 2
    assert any("its process died by os._exit(9)" in sentence for sentence in orchestrator.said)


def test_a_step_whose_worker_always_dies_ends_in_a_sentence(orchestrator: Orchestrator) -> None:
    with pytest.raises(ProduceError, match="Step 'toy/hopeless' lost its worker 2 times"):
        orchestrator.produce(toy("hopeless", toy_steps.crash, note="SIGKILL"), lost_worker_budget=1)


@pytest.mark.parametrize(
    ("how", "steps", "phrase"),
    [
        ("SIGSEGV", 0, r"signal 11 \(SIGSEGV\) in \w+, \S+ line \d+"),
        pytest.param(
            "SIGABRT",
            3,
            r"signal 6 \(SIGABRT\) in crash, toy_steps.py line \d+, after step 2",
            marks=pytest.mark.long,
        ),
        ("os._exit", 3, r"os._exit\(9\) in crash, toy_steps.py line \d+, after step 2"),
    ],
)
def test_the_same_crash_twice_at_the_same_place_is_the_failure_of_the_step(
    orchestrator: Orchestrator, prefix: Path, how: str, steps: int, phrase: str
) -> None:
    with pytest.raises(ProduceError) as raised:
        orchestrator.produce(toy("crashing", toy_steps.crash, note=how, value=steps), lost_worker_budget=10)
    [path] = prefix.glob("toy/crashing-*")
    log = path / ".marin/attempts/2.log"
    assert re.fullmatch(
        rf"Step 'toy/crashing' crashes: in attempts 1 and 2 alike, its process died by {phrase}, and its machine was "
        rf"not lost\. Its log: {log}\. Fix it and materialize again; complete outputs are reused\.",
        str(raised.value),
    )
    assert len(calls(prefix)) == 2
    assert 'toy_steps.py", line' in log.read_text()
    assert read_status(str(path)) is Status.FAILED


@pytest.mark.long
def test_a_crash_that_comes_later_each_time_is_tried_again_as_often_as_any_loss(
    orchestrator: Orchestrator, tmp_path: Path, prefix: Path
) -> None:
    step = toy("later", toy_steps.crash_one_step_later_each_time, gate=str(tmp_path / "step"))
    with pytest.raises(ProduceError, match="Step 'toy/later' lost its worker 3 times"):
        orchestrator.produce(step, lost_worker_budget=2)
    assert len(calls(prefix)) == 3


def test_cancelling_stops_the_compute_and_its_children(
    orchestrator: Orchestrator, tmp_path: Path, prefix: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    step = toy("long", toy_steps.wait_with_a_child, gate=str(gate))

    async def start_and_cancel() -> list[int]:
        task = asyncio.create_task(orchestrator.produce_async(step))
        text = await asyncio.to_thread(wait_until, logged(prefix, "toy/long", "waiting in process"), "the step")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [int(word) for word in text.split() if word.isdigit()]

    pids = asyncio.run(start_and_cancel())
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)), "worker and child to be gone", timeout_s=5)
    [path] = prefix.glob("toy/long-*")
    assert read_status(str(path)) is Status.FAILED
    assert "stopped" in json.loads((path / ".marin/attempts/1.json").read_text())["outcome"]


def test_a_second_orchestrator_waits_says_for_whom_and_reuses(
    orchestrator: Orchestrator, tmp_path: Path, prefix: Path, backend: LocalBackend
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    step = toy("slow", toy_steps.wait_at_gate, gate=str(gate))
    second = Orchestrator(prefix, backend)

    async def both() -> tuple[Produced, Produced]:
        one = asyncio.create_task(orchestrator.produce_async(step))
        await asyncio.to_thread(wait_until, logged(prefix, "toy/slow", "waiting in process"), "the step")
        other = asyncio.create_task(second.produce_async(step))
        await asyncio.to_thread(wait_until, lambda: second.said, "the second to say that it waits")
        gate.unlink()
        return await one, await other

    first, waited = asyncio.run(both())
    assert not first.reused
    assert waited.reused
    assert waited.waited_s > 0
    assert len(calls(prefix)) == 1
    assert f"process {os.getpid()}" not in second.said[0]
    assert "Dagster run run-1" in second.said[0]


def test_a_run_that_must_not_wait_fails_and_says_who_works(
    orchestrator: Orchestrator, tmp_path: Path, prefix: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    step = toy("busy", toy_steps.wait_at_gate, gate=str(gate))

    async def both() -> Produced:
        one = asyncio.create_task(orchestrator.produce_async(step))
        await asyncio.to_thread(wait_until, logged(prefix, "toy/busy", "waiting in process"), "the step")
        with pytest.raises(
            ProduceError, match=r"Step 'toy/busy' is being computed by process \d+ on .*configured not to wait"
        ):
            await orchestrator.produce_async(step, wait_for_others=False)
        gate.unlink()
        return await one

    assert not asyncio.run(both()).reused


def test_an_output_that_is_completed_after_the_look_at_it_is_reused(orchestrator: Orchestrator, prefix: Path) -> None:
    step = toy("a")
    before = orchestrator.store.look([build_graph([step])[step].output])
    orchestrator.produce(step)
    again = orchestrator.produce(step, recent=lambda outputs: before)
    assert again.reused
    assert len(calls(prefix)) == 1


def test_an_input_that_is_gone_after_the_look_at_it_is_named(orchestrator: Orchestrator, prefix: Path) -> None:
    a = toy("a")
    path = orchestrator.produce(a).observed.path
    before = orchestrator.store.look([build_graph([a])[a].output])
    shutil.rmtree(path)
    with pytest.raises(ProduceError, match="Step 'toy/b' needs 'toy/a'"):
        orchestrator.produce(toy("b", reads=a), recent=lambda outputs: before)
    assert len(calls(prefix)) == 1


def test_a_killed_worker_outside_of_any_run_leaves_an_output_that_is_taken_over(
    orchestrator: Orchestrator, tmp_path: Path, prefix: Path
) -> None:
    """A worker that dies with its whole deployment leaves RUNNING behind; the kernel has freed its lease."""
    gate = tmp_path / "gate"
    gate.touch()
    step = toy("orphan", toy_steps.wait_at_gate, gate=str(gate))
    script = tmp_path / "lone_worker.py"
    graph = build_graph([step])
    task = build_request(graph[step], graph, orchestrator.store, None).task(1, {}, None)
    script.write_text(
        "import json, sys\n"
        f"sys.path.insert(0, {str(Path(toy_steps.__file__).parent)!r})\n"
        "from marin_resources.ray_tpu.worker.run_task import run_task\n"
        "run_task(json.load(sys.stdin))\n"
    )
    worker = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(task.to_dict()))
    worker.stdin.close()
    wait_until(logged(prefix, "toy/orphan", "waiting in process"), "the lone worker")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert read_status(task.path) is Status.RUNNING
    gate.unlink()
    assert not orchestrator.produce(step).reused
    assert read_status(task.path) is Status.SUCCESS
