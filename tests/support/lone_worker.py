"""`python lone_worker.py [ray]`: run the task on standard input, and print its outcome.

Here, in this very process; with `ray` as a task of a Ray that this process starts, as a run does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from marin_resources.ray_tpu.worker.run_task import outcome_to_json, run_task

if __name__ == "__main__":
    text = sys.stdin.read()
    if "ray" in sys.argv:
        from marin_resources.ray_tpu.backend import Outcome
        from marin_resources.ray_tpu.local import LocalBackend
        from marin_resources.wire.task import Task

        backend = LocalBackend(cpus=3)

        async def compute() -> Outcome:
            return await backend.wait(await backend.submit(Task.from_json(text)), lambda line: None)

        print(outcome_to_json(asyncio.run(compute())), flush=True)
        backend.shutdown()
    else:
        print(run_task(text), flush=True)
