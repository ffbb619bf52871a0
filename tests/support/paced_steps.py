"""A step that reports how far it is until somebody has seen it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH
from marin_resources.step_api.progress import report_numbers, report_step


@dataclass(frozen=True, kw_only=True)
class PacedConfig:
    seen: str
    """A local file. The step ends when it exists."""
    output_path: str = THIS_OUTPUT_PATH


def step_until_seen(config: PacedConfig) -> dict[str, int]:
    step = 0
    while not os.path.exists(config.seen):
        step += 1
        report_numbers({"loss": 2.5, "tokens_per_second": 100.0}, of=100_000)
        report_step(step)
        time.sleep(0.01)
    return {"steps": step}
