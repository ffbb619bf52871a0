"""Dagster's daemon, which kills itself once (SIGKILL): after a sensor's runs are launched, before its cursor is kept.

python daemon_killed_once.py FLAG run -w workspace.yaml     FLAG: a file; while it exists, the kill is due
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from dagster._core.scheduler.instigation import TickStatus
from dagster._daemon.cli import main
from dagster._daemon.sensor import SensorLaunchContext


def arm(flag: Path) -> None:
    keep = SensorLaunchContext.update_state

    def update_state(self: SensorLaunchContext, status: TickStatus, **more: Any) -> None:
        if status is TickStatus.SUCCESS and self.run_count and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        keep(self, status, **more)

    SensorLaunchContext.update_state = update_state


if __name__ == "__main__":
    arm(Path(sys.argv.pop(1)))
    sys.argv[0] = "dagster-daemon"
    main()
