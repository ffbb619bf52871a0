"""Note the calls of some functions, in each process of a step whose Python starts with this folder on PYTHONPATH.

In:  NOTED_FUNCTIONS, a file with a line "file <tab> function" for each; NOTED_CALLS, the file that gets the calls.
Out: a line "pid <tab> process <tab> file <tab> function" for each call, in the order of the calls in all processes.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from types import FrameType
from typing import Any

FUNCTIONS, CALLS, SCRIPT = "NOTED_FUNCTIONS", "NOTED_CALLS", "NOTED_SCRIPT"
PROCESSES = {
    "marin_resources.ray_tpu.job.batch_job": "the batch job",
    "marin_resources.ray_tpu.job": "the job",
    "default_worker.py": "the worker",
    "--multiprocessing-fork": "the run",
    "grpc": "the code server",
}
"""A word of the command line -> the process. The first that fits; NOTED_SCRIPT is a further word, of the run."""
RESUMABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def process() -> str | None:
    """Which process of a step this is; None for any other."""
    words = [word.rpartition("/")[2] for word in sys.orig_argv]
    if os.environ.get(SCRIPT, "").rpartition("/")[2] in words:
        return "the run"
    name = next((name for word, name in PROCESSES.items() if word in words), None)
    return "a host" if name == "the worker" and "TPU_NAME" in os.environ else name


def note_calls(name: str, functions: str, calls: str) -> None:
    """Note the calls in all threads of this process, which is called `name`."""
    with open(functions) as file:
        known = {tuple(line.rstrip("\n").split("\t")) for line in file}
    names = {function.rpartition(".")[2] for _, function in known}
    target = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name not in names or not _begins(frame):
            return
        for file, function in known:
            if code.co_qualname == function and code.co_filename.endswith(f"/{file}"):
                os.write(target, f"{os.getpid()}\t{name}\t{file}\t{function}\n".encode())

    threading.setprofile(on_event)
    sys.setprofile(on_event)


def _begins(frame: FrameType) -> bool:
    """Whether the function begins. A coroutine or generator that continues has the same event."""
    code = frame.f_code
    return not code.co_flags & RESUMABLE or code.co_code[frame.f_lasti + 1] == 0  # the argument of RESUME


if (_name := process()) is not None and FUNCTIONS in os.environ:
    note_calls(_name, os.environ[FUNCTIONS], os.environ[CALLS])
