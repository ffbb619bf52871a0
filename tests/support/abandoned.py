"""`python abandoned.py PREFIX OUTPUT`: claim an output, say so, and wait. For tests that kill the worker."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time

from marin_resources.storage.output.store import Store
from marin_resources.types.output import Output


def worker_of(prefix: str, output: Output) -> subprocess.Popen[str]:
    """A process that holds the lease of the output."""
    arguments = [sys.executable, __file__, prefix, json.dumps(dataclasses.asdict(output))]
    worker = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "claimed\n"
    return worker


def kill(worker: subprocess.Popen[str]) -> None:
    """kill -9."""
    worker.kill()
    worker.communicate()


if __name__ == "__main__":
    claim = Store(sys.argv[1]).claim(Output(**json.loads(sys.argv[2])), attempt=1, resumable=False, run_id="r" * 36)
    print("claimed", flush=True)
    time.sleep(1000)
