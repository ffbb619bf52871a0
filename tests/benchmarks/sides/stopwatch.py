"""A step that tells when it began and ended, and does nothing else."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class StopwatchConfig:
    output_path: str


def stopwatch(config: StopwatchConfig) -> None:
    first_s = time.time()
    Path(config.output_path, "times.json").write_text(json.dumps({"first_line": first_s, "last_line": time.time()}))
