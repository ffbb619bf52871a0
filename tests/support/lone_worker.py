"""`python lone_worker.py [ray]`: run the task on standard input, and print its outcome.

Here, in this very process; with `ray` as a task of a Ray that this process starts, as a run does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from marin_resources.ray_tpu.worker.run_task import run_task

if __name__ == "__main__":
    task = json.load(sys.stdin)
    if "ray" in sys.argv:
        from marin_resources.ray_tpu.local.backend import LocalBackend
        from marin_resources.wire.outcome import Outcome
        from marin_resources.wire.task import Task

        backend = LocalBackend(cpus=3)

        async def compute() -> Outcome:
            return await backend.wait(await backend.submit(Task.from_dict(task)), lambda line: None)

        print(json.dumps(asyncio.run(compute()).to_dict()), flush=True)
        backend.shutdown()
    else:
        print(json.dumps(run_task(task)), flush=True)
