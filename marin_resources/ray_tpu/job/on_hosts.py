"""A step on GPUs or on slices of TPUs: the job's own process holds its lease, and calls its function on their hosts.

In:  the job's note.   Out: the outcome.

The job claims the output when it has its hosts, and publishes what host 0 returns. A host that dies ends a try, not the
attempt: the job reserves others, and calls the function there. So the recovery waits for no lease, and a host that was
cut off and keeps running can publish nothing.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from marin_resources.ray_tpu.job.host import host_task
from marin_resources.ray_tpu.job.host_wait import HostWait
from marin_resources.ray_tpu.job.retry import retry_while_unavailable
from marin_resources.ray_tpu.job.run_step import placement_of
from marin_resources.ray_tpu.ray_options import UnmeetableError
from marin_resources.ray_tpu.shards.connection import connect, task_environment
from marin_resources.ray_tpu.shards.job_allocation import RAY_OUTPUT_VARIABLES
from marin_resources.ray_tpu.shards.worker_context import worker_context
from marin_resources.ray_tpu.slices.bad_hosts import avoidable, bad_hosts, host_key, key_of_node, report_bad_host
from marin_resources.ray_tpu.slices.bad_slices import report_bad_slice
from marin_resources.ray_tpu.slices.bundles import task_options
from marin_resources.ray_tpu.slices.causes import Cause, Failure
from marin_resources.ray_tpu.slices.host_env import place_of
from marin_resources.ray_tpu.slices.reservation import Host, reserve
from marin_resources.ray_tpu.slices.retries import RetryLoop, TriesFailedError
from marin_resources.ray_tpu.slices.run_hosts import Start
from marin_resources.ray_tpu.slices.scale_up import slice_count
from marin_resources.ray_tpu.worker.run_task import ElsewhereHooks, ReportedError, run
from marin_resources.storage.output.attempts import add_facts, earlier_tries
from marin_resources.storage.output.notes.job_notes import JobNote, was_lost_before
from marin_resources.storage.output.notes.ledger import facts_of
from marin_resources.storage.upload.writer import Writer
from marin_resources.wire.outcome import End, Outcome


def run_on_hosts(note: JobNote) -> Outcome:
    """Run the task on hosts with its devices. When this returns or raises, they are released."""
    os.environ.update(RAY_OUTPUT_VARIABLES)
    job, began_s = _Job(note, connect()), time.monotonic()
    with ExitStack() as first:
        try:
            job.first = first.enter_context(job.reserve())
            job.waited_s = time.monotonic() - began_s
        except UnmeetableError as error:
            return Outcome(end=End.FAILED, error=str(error))
        job.release_first = first.close
        return run(note.task, dataclasses.replace(placement_of(note, time.time()), call=job.call, facts=job.facts))


class _Job:
    def __init__(self, note: JobNote, ray: Any) -> None:
        self._note, self._ray, self._task = note, ray, note.task
        self.first: tuple[Host, ...] | None = None
        """The hosts that were reserved before the claim."""
        self.waited_s = 0.0
        """Seconds of waiting for the hosts."""
        self.release_first: Callable[[], None] = lambda: None
        self._tries: RetryLoop | None = None
        self._earlier: list[dict[str, Any]] = []

    def facts(self) -> dict[str, Any]:
        """The facts of the tries for the record, with the tries of earlier attempts at this output."""
        return facts_of(self._own(), self._earlier)

    def _own(self) -> list[dict[str, Any]]:
        """The tries of this attempt."""
        return [entry.to_dict() for entry in self._tries.ledger] if self._tries else []

    def call(self, attempt: ElsewhereHooks) -> Any:
        """The function's result, from host 0."""
        self._earlier = earlier_tries(self._task.path, self._task.attempt)
        self._tries = RetryLoop(
            ray=self._ray,
            resources=self._task.resources,
            attempt=self._task.attempt,
            name=f"{self._note.submission_id}-{self._ray.get_runtime_context().get_job_id()}",
            reserve=self._next_hosts,
            began=attempt.began,
            begin=lambda number: self._starter(attempt.begin_again(number) if number > 1 else None),
            changed=lambda: add_facts(self._task.path, self._task.attempt, facts_of(self._own())),
            log=_print,
            waited_s=self.waited_s,
            on_bad_host=partial(_report, step=self._task.output.name),
        )
        try:
            return self._tries.run()
        except UnmeetableError as error:
            raise ReportedError(str(error), "") from None
        except TriesFailedError as error:
            raise ReportedError(error.sentence, error.traceback) from None

    @contextmanager
    def _next_hosts(self, dead: Collection[str]) -> Iterator[tuple[Host, ...]]:
        if self.first is None:
            with self.reserve(dead) as hosts:
                yield hosts
            return
        hosts, self.first = self.first, None
        try:
            yield hosts
        finally:
            self.release_first()

    @contextmanager
    def reserve(self, dead: Collection[str] = ()) -> Iterator[tuple[Host, ...]]:
        """Wait for the hosts, on none of the `dead` nodes. Raises UnmeetableError if the step has had none, and no
        node can hold it for long."""
        resources = self._task.resources
        has_run = bool(self._own()) or retry_while_unavailable(lambda: was_lost_before(self._note))
        watch = HostWait(self._task, self._ray, has_run=has_run)

        def avoid() -> frozenset[str]:
            nodes = [node for node in self._ray.nodes() if node["NodeID"] not in dead]
            bad = bad_hosts()
            avoided = avoidable(resources, nodes, [node["NodeID"] for node in nodes if key_of_node(node) in bad])
            keys = sorted(key_of_node(node) for node in nodes if node["NodeID"] in avoided)
            watch.avoided = {key: bad[key] for key in keys}
            return avoided | frozenset(dead)

        with reserve(self._ray, resources, avoid=avoid, on_wait=watch.check, name=self._note.job) as hosts:
            yield hosts

    def _starter(self, writer: Writer | None) -> Callable[[Sequence[Host], str], Start]:
        """The function that starts a try on its hosts, which write as `writer`; None: as this process does."""
        context = worker_context() if writer is None else {**worker_context(), "writer": str(writer)}
        resources = self._task.resources
        options = {**task_options(resources), "runtime_env": task_environment(resources.cpus)}
        options |= {"max_retries": 0, "num_returns": "streaming"}
        remote = self._ray.remote(max_calls=1)(host_task)

        def starter(hosts: Sequence[Host], notes: str) -> Start:
            def start(host: Host, coordinator: str | None) -> Any:
                where = place_of(host, len(hosts), slice_count(hosts), coordinator)
                name = f"{self._task.id} host {host.index}"
                here = remote.options(scheduling_strategy=host.scheduling(), name=name, **options)
                return here.remote(self._note, where, context, notes)

            return start

        return starter


def _print(line: str) -> None:
    print(line, flush=True)


def _report(host: Host, failure: Failure, step: str) -> None:
    """Let steps avoid the host for a while. Let the slice be replaced if its devices fail for other steps too: a step
    that hangs, or has too short a time limit, does not prove a fault of the devices."""
    report_bad_host(host_key(host.node_id, host.slice_name, host.bundle), failure.error, step)
    if host.slice_name is not None and failure.cause is Cause.BAD_HOST:
        report_bad_slice(host.slice_name, failure.error, step)
