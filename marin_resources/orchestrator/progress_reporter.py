"""Report the progress of an attempt to the run that waits for it, from the worker's notes beside the output.

The rate is bounded, as each one becomes an event in Dagster's database: the first after half a minute, then each after
a twentieth of the time so far, so a day has about 140 and a month 210.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.output.notes.progress import Progress, read_progress
from marin_resources.types.versioned_json import ControlFileError

FIRST_S, SHARE = 30.0, 1 / 20


@asynccontextmanager
async def watched_pace(
    path: str, attempt: int, on_pace: Callable[[Progress], None], log: Callable[[str], None]
) -> AsyncIterator[None]:
    """Call `on_pace` with each new pace of an attempt while the block runs. A pace that cannot be read is logged."""
    watching = asyncio.create_task(_watch(path, attempt, on_pace, log))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def wait_s(elapsed_s: float) -> float:
    """Seconds until the next look."""
    return max(FIRST_S, SHARE * elapsed_s)


async def _watch(path: str, attempt: int, on_pace: Callable[[Progress], None], log: Callable[[str], None]) -> None:
    began_s, shown = time.monotonic(), ""
    while True:
        await asyncio.sleep(wait_s(time.monotonic() - began_s))
        try:
            pace = await asyncio.to_thread(read_progress, path, attempt)
        except (ControlFileError, UnavailableError, OSError) as error:  # it decides nothing
            log(f"how far the step is cannot be read now: {error}")
            continue
        if pace is not None and pace.at != shown:
            shown = pace.at
            await asyncio.to_thread(on_pace, pace)
