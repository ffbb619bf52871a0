"""`python -m marin_resources.ray_tpu.job.batch_job TASK_QUEUE`: run the steps of a task queue as Ray tasks.

In:  notes of small steps (`cluster/batch_jobs/task_queue.py`).
Out: the outputs of the steps, and an outcome or an end in each note. Each step is one Ray task with the step's
     resources, in a pool of processes; one that would spoil its process gets a process of its own.

The batch job ends when its run has announced the last step, or after two minutes without a message or a step. If it
dies, Ray ends its tasks, and the runs that wait retry their steps. A SIGTERM stops all of its steps.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from marin_resources.ray_tpu.cluster.batch_jobs.steps import write_steps
from marin_resources.ray_tpu.cluster.batch_jobs.task_queue import Message, TaskQueue
from marin_resources.ray_tpu.environment.fresh_process import needs_fresh_process
from marin_resources.ray_tpu.job.entry import EXIT_STOPPED
from marin_resources.ray_tpu.job.retry import retry_while_unavailable
from marin_resources.ray_tpu.job.run_step import run_in_task
from marin_resources.ray_tpu.ray_options import ray_options
from marin_resources.ray_tpu.shards.connection import connect, task_environment
from marin_resources.ray_tpu.shards.job_allocation import RAY_OUTPUT_VARIABLES
from marin_resources.ray_tpu.worker import stop_signal
from marin_resources.ray_tpu.worker.stop_signal import Stopped
from marin_resources.ray_tpu.worker.task_error import outcome_of_error
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.files import remove_folder
from marin_resources.storage.output.notes.job_notes import JobNote, add_ended, add_outcome, read_note
from marin_resources.storage.paths import is_local
from marin_resources.types.versioned_json import ControlFileError

DISK_POLL_S, BUCKET_POLL_S = 0.05, 1.0
LIST_EVERY_S = 1.0
IDLE_S = 120.0
"""Time limit for a message when no step runs. A run that is alive starts another batch job after that."""
STOP_TIMEOUT_S = 1.2
"""Time limit for a cancelled step to record its stop. Ray kills this process 3 s after SIGTERM."""
KILL_TIMEOUT_S = 1.0


@dataclass(eq=False, kw_only=True)
class _Running:
    """A step that was given to Ray."""

    note_path: str
    note: JobNote
    result: Any
    """Ray's reference."""
    cancelled_s: float | None = None
    """The time of its cancellation, by the monotonic clock."""
    killed: bool = False


@dataclass(eq=False, kw_only=True)
class BatchJobServer:
    task_queue: TaskQueue
    ray: Any
    poll_s: float
    _running: dict[Any, _Running] = field(default_factory=dict)
    """By Ray's reference."""
    _known: set[str] = field(default_factory=set)
    """Paths of all notes that have arrived."""
    _ending: bool = False
    _listed: frozenset[str] = frozenset()
    """The notes in the list that people see, and when it was written by the monotonic clock."""
    _listed_s: float = float("-inf")

    def serve(self) -> None:
        """Run the steps that arrive until the last one has ended. Blocks."""
        active_s = time.monotonic()
        while True:
            # one by one: a store that fails at the second message must not lose the first
            while (message := retry_while_unavailable(lambda: next(self.task_queue.new(), None))) is not None:
                self._take(message)
                active_s = time.monotonic()
            self._kill_stubborn()
            if self._collect(self.poll_s):
                active_s = time.monotonic()
            self._list_steps()
            if self._running:
                continue
            if self._ending:
                retry_while_unavailable(lambda: remove_folder(self.task_queue.path))
                return
            if time.monotonic() - active_s > IDLE_S and retry_while_unavailable(self.task_queue.close):
                return

    def stop_all(self) -> None:
        """Stop all steps, and wait until their workers are gone."""
        self._cancel(self._running.values())
        for timeout_s, force in ((STOP_TIMEOUT_S, True), (KILL_TIMEOUT_S, False)):
            results = list(self._running)
            if results:
                self.ray.wait(results, num_returns=len(results), timeout=timeout_s, fetch_local=False)
            if force:
                for result in results:
                    self.ray.cancel(result, force=True)

    def _list_steps(self) -> None:
        """Rewrite the list of unfinished steps if it has changed, once a second."""
        now = frozenset(running.note_path for running in self._running.values())
        if now == self._listed or time.monotonic() - self._listed_s < LIST_EVERY_S:
            return
        self._listed, self._listed_s = now, time.monotonic()
        try:
            write_steps(self.task_queue.path, now)
        except (UnavailableError, ControlFileError) as error:  # only what people see is old
            print(error, flush=True)

    def _take(self, message: Message) -> None:
        for path in message.run:
            if path not in self._known:
                self._known.add(path)
                self._start(path)
        if message.stop:
            self._cancel([running for running in self._running.values() if running.note_path in message.stop])
        self._ending |= message.end

    def _start(self, path: str) -> None:
        try:
            note = retry_while_unavailable(lambda: read_note(path))
        except ControlFileError as error:  # of this step alone
            print(error, flush=True)
            return
        if note is None or not note.open:
            if note is not None and note.stop is not None:  # the run that stopped it waits for its end
                retry_while_unavailable(lambda: add_ended(path, "it was stopped before it began"))
            return
        task = note.task
        options = {**ray_options(task.resources), "max_retries": 0, "name": task.id}
        options["runtime_env"] = task_environment(task.resources.cpus)
        fresh = needs_fresh_process(task) or task.env  # the next task may not see its secrets
        function = self.ray.remote(max_calls=1 if fresh else 0)(_run_note)
        result = function.options(**options).remote(path)
        self._running[result] = _Running(note_path=path, note=note, result=result)

    def _cancel(self, steps: Iterable[_Running]) -> None:
        for step in steps:
            if step.cancelled_s is None:
                step.cancelled_s = time.monotonic()
                self.ray.cancel(step.result, force=False)

    def _kill_stubborn(self) -> None:
        """Kill the workers of steps that ignore their stop."""
        for step in self._running.values():
            if step.cancelled_s is None or step.killed or time.monotonic() - step.cancelled_s < STOP_TIMEOUT_S:
                continue
            step.killed = True
            self.ray.cancel(step.result, force=True)

    def _collect(self, timeout_s: float) -> bool:
        """Wait for steps that end, and close their notes. Return whether one has ended."""
        if not self._running:
            time.sleep(timeout_s)
            return False
        ended, _ = self.ray.wait(list(self._running), num_returns=1, timeout=timeout_s, fetch_local=False)
        if ended:
            ended, _ = self.ray.wait(list(self._running), num_returns=len(self._running), timeout=0, fetch_local=False)
        for result in ended:
            self._close(self._running.pop(result))
        return bool(ended)

    def _close(self, ended: _Running) -> None:
        """Record the end of a step whose worker did not."""
        try:
            self.ray.get(ended.result)
        except self.ray.exceptions.RayError as error:
            outcome = outcome_of_error(ended.note.task, error)
            try:
                if ended.cancelled_s is None:
                    retry_while_unavailable(lambda: add_outcome(ended.note_path, outcome))
                else:  # the note names the run that stopped it
                    retry_while_unavailable(lambda: add_ended(ended.note_path, "it was stopped"))
            except ControlFileError as second:
                print(second, flush=True)


def _run_note(path: str) -> None:
    """Run the step of a note in this process, and add its outcome to the note."""
    note = retry_while_unavailable(lambda: read_note(path))
    if note is None or not note.open:
        return
    outcome = run_in_task(note)
    retry_while_unavailable(lambda: add_outcome(path, outcome))


def main(task_queue: str) -> int:
    """Serve a task queue and return the exit code."""
    stop_signal.install()
    poll_s = DISK_POLL_S if is_local(task_queue) else BUCKET_POLL_S
    os.environ.update(RAY_OUTPUT_VARIABLES)
    ray = connect()
    # by its name, so that workers import the function instead of unpickling it from `__main__`
    from marin_resources.ray_tpu.job import batch_job as this_module

    serving = this_module.BatchJobServer(task_queue=TaskQueue(task_queue), ray=ray, poll_s=poll_s)
    try:
        serving.serve()
        stop_signal.acknowledge()
    except (ControlFileError, UnavailableError) as error:  # the runs that wait retry their steps in another batch job
        print(f"This job ends, and its steps with it: {error}", flush=True)
        serving.stop_all()
        return 1
    except Stopped:
        stop_signal.acknowledge()
        print("This job ends: it was stopped from outside (SIGTERM), and its steps with it.", flush=True)
        serving.stop_all()
        return EXIT_STOPPED
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            f"{' '.join(sys.argv[1:])!r} is not the path of one task queue. The cluster back end runs this command."
        )
    sys.exit(main(sys.argv[1]))
