"""The output of a run's process: captured in a file for Dagster, and passed on to the terminal, to the last line.

Dagster (1.13.27) passes the file on by `tail`, in a process that it terminates when the run ends. On a busy machine
the terminal then lacks the last lines, such as why a step failed (dagster-io/dagster#23336). Here a thread follows the
file, and ends when it has passed on all of it. That also saves four processes for each run.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from dagster._core.execution import compute_logs

POLL_S = 0.05
CHUNK_BYTES = 65_536


@contextmanager
def threads_for_tails() -> Iterator[None]:
    """Follow each stream that is captured in this block by a thread."""
    tails = compute_logs.tail_to_stream
    compute_logs.tail_to_stream = _follow
    try:
        yield
    finally:
        compute_logs.tail_to_stream = tails


@contextmanager
def _follow(path: str, stream: Any) -> Iterator[tuple[None, None]]:
    """Pass on the lines of the file to the present target of the stream. Yields as Dagster's own function: two pids."""
    fileno = compute_logs._fileno(stream)
    if not fileno:  # not a stream of the system: then Dagster captures nothing
        yield None, None
        return
    ended = threading.Event()
    with open(path, "rb") as file, os.fdopen(os.dup(fileno), "wb", buffering=0) as shown:
        thread = threading.Thread(target=_pass_on, args=[file, shown, ended], name=f"follow {path}", daemon=True)
        thread.start()
        try:
            yield None, None
        finally:
            ended.set()
            thread.join()


def _pass_on(file: IO[bytes], shown: IO[bytes], ended: threading.Event) -> None:
    with suppress(BrokenPipeError):  # nobody reads any more; the file has everything
        while True:
            last = ended.is_set()
            while data := file.read(CHUNK_BYTES):
                _write(shown, data)
            if last:
                return
            ended.wait(POLL_S)


def _write(shown: IO[bytes], data: bytes) -> None:
    """Write all, also to a terminal that is not ready."""
    while data:
        written = shown.write(data)
        if written is None:  # not ready
            select.select([], [shown], [])
        else:
            data = data[written:]
