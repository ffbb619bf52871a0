"""One host of a step: the process of a Ray task in which the step's function runs, as on all other hosts of its slice.

In:  the job's note, the place of the host among the others, and the context of the attempt, whose process is the job's.
Out: the address of this process, when it runs; then a report of how the function ended.

The process claims and publishes nothing. It has run one function, and is not used again: a process that has held a TPU
can give it back only by its end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from marin_resources.hardware.resources import Resources
from marin_resources.ray_tpu.cluster.settings import FAKE_VARIABLE
from marin_resources.ray_tpu.crash_note import crash_noted
from marin_resources.ray_tpu.job.accelerator import accelerator_variables
from marin_resources.ray_tpu.job.local_code import has_vanished
from marin_resources.ray_tpu.job.process_setup import SETUP_ERRORS, set_up_process
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, ShardRequirements, reserve
from marin_resources.ray_tpu.shards.worker_context import activate
from marin_resources.ray_tpu.slices.host_env import megascale
from marin_resources.ray_tpu.slices.host_exit import report_of_error, report_of_missing_code, report_of_result
from marin_resources.ray_tpu.slices.host_faults import host_fault
from marin_resources.ray_tpu.slices.host_progress import Notes, ProgressOnHost
from marin_resources.ray_tpu.slices.preemption_notice import HOST_VARIABLE, drain_this_node, watched
from marin_resources.ray_tpu.worker.deadline import deadline
from marin_resources.ray_tpu.worker.process_tree import adopt_orphans, children, kill_descendants
from marin_resources.ray_tpu.worker.progress_writer import noted_pace
from marin_resources.ray_tpu.worker.result import jsonable
from marin_resources.ray_tpu.worker.run_task import below_file, register_mirrors
from marin_resources.step_api import hosts
from marin_resources.step_api.progress import Several, Unheard, reports_to
from marin_resources.storage.output.notes.job_notes import JobNote
from marin_resources.wire.config_json import decode
from marin_resources.wire.reference import load

PEERS_HANG_S = 5.0
"""Delay of the end of a process that hangs: its peers hang with it, and print their stacks in these seconds."""


def host_task(note: JobNote, place: Mapping[str, str], context: Mapping[str, Any], notes: str) -> Iterator[Any]:
    """Yield "address:port" of this host, with a port that is free, then the report of the function's end.

    `place`: the variables of `marin_resources.step_api.hosts`. `context`: see `shards/worker_context.py`. `notes`: the
    name of the notes of the hosts' progress.
    """
    import ray  # late, for its weight

    address = f"{ray.util.get_node_ip_address()}:{_free_port()}"
    yield address
    coordinator = {hosts.COORDINATOR: address} if int(place[hosts.COUNT]) > 1 else {}
    variables = {**coordinator, **place}
    os.environ.update({**variables, **megascale(variables), **accelerator_variables(note.task.resources)})
    yield _run(note, context, ProgressOnHost(Notes(notes), hosts.host_index()))


def _run(note: JobNote, context: Mapping[str, Any], progress: ProgressOnHost) -> dict[str, Any]:
    if note.code.get("image_root"):
        os.chdir(note.code["image_root"])  # as a job's own process; Ray enters a shipped directory by itself
    adopt_orphans()
    with activate(context):
        try:
            return report_of_result(_call(note, progress))
        except SETUP_ERRORS as error:
            return report_of_error(str(error), "")
        except BaseException as error:  # also SystemExit: the job must learn of it
            if has_vanished(note.code):
                return report_of_missing_code(f"its code is gone from its node: {error}")
            redactor = Redactor(secrets_of(note.task.env))
            text = redactor.text("".join(traceback.format_exception(type(error), error, below_file(error, __file__))))
            print(text, flush=True)
            return report_of_error(redactor.text(f"{type(error).__name__}: {error}"), text, host_fault(error))


def _call(note: JobNote, progress: ProgressOnHost) -> Any:
    """The function's result as JSON, on host 0; nothing of it on the others."""
    task, resources = set_up_process(note), note.task.resources
    if "mirror://" in json.dumps(task.config):
        register_mirrors()
    allocation = JobAllocation(cpus=resources.cpus, memory_bytes=resources.memory_bytes, lent_while_waiting=True)
    with reserve(allocation, ShardRequirements(env=task.env, packages=task.packages)):
        function, config = load(task.fn), decode(task.config)
        before = children()
        with _heard(progress, note), _notices(resources):
            try:
                result = function(config)
            finally:
                kill_descendants(but=before)
    return Redactor(secrets_of(task.env)).json(jsonable(result)) if hosts.host_index() == 0 else None


@contextmanager
def _heard(progress: ProgressOnHost, note: JobNote) -> Iterator[None]:
    """Listen to the function. If it reports no step for too long: print all stacks, note it, end the process."""
    limit_s = note.task.progress_timeout_s
    noted = noted_pace(note.task.path, note.attempt) if hosts.host_index() == 0 else nullcontext(Unheard())

    def on_expired(_: str) -> None:
        assert limit_s is not None
        progress.hangs(limit_s)
        print(f"no progress for {limit_s:g} s; the stacks of all threads:", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(file=2, all_threads=True)
        time.sleep(PEERS_HANG_S)

    with deadline(limit_s, on_expired) as renew, noted as pace, crash_noted(progress.crash_name) as steps:
        progress.renew = renew
        with reports_to(Several((progress, pace, steps))):
            yield


def _notices(resources: Resources) -> AbstractContextManager[None]:
    """Listen to the cloud, on a machine of one."""
    has_cloud = resources.tpu is not None and not os.environ.get(FAKE_VARIABLE)
    return watched(drain_this_node) if has_cloud or os.environ.get(HOST_VARIABLE) else nullcontext()


def _free_port() -> int:
    """A port that no process of this machine uses now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
