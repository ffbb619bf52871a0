"""Positions in the logs of jobs up to which runs have shown them: a run that attaches to a killed run's job continues
there.

In:  the lines of jobs, as a run shows them.
Out: the position where the next run continues: the bytes that were noted, and the number of lines that the killed run
     has shown after them. The bytes are one row for each job among the instance's key-values. The lines are counted in
     the captured output of the run, which holds each line that was printed, whenever its process was killed.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

import dagster as dg

from marin_resources.ray_tpu.cluster.monitor.job_log import Shown

WRITE_EVERY_S = 5.0
log = logging.getLogger(__name__)


def output_line(step: str, line: str) -> str:
    """A line of a step as the run prints it."""
    return f"[{step}] {line}"


class LogPositions:
    """Each call blocks on the instance's database; do not call it from an event loop's thread."""

    def __init__(
        self, instance: dg.DagsterInstance, run_id: str, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._instance, self._run_id, self._clock_s = instance, run_id, clock_s
        self._lines: Counter[str] = Counter()
        """Lines that this run has shown, by step."""
        self._noted: dict[str, int] = {}
        self._written_at_s: dict[str, float] = {}

    def of(self, submission_id: str, step: str) -> Shown:
        """The part of the log that earlier runs have shown; nothing of an unknown job."""
        key = _key(submission_id)
        noted = self._instance.run_storage.get_cursor_values({key}).get(key, "")
        position, before, lines, run_id, *_ = [*noted.split(), "", "", "", ""]
        if not position.isdigit():
            return Shown()
        more = int(before) + max(0, self._lines_shown_by(run_id, step) - int(lines)) if run_id else 0
        return Shown(bytes=int(position), lines_after=more)

    def show(self, submission_id: str, step: str, before: Shown, pass_on: Callable[[], None]) -> None:
        """Pass on a line of the job. `before` is the part of the log that earlier runs have shown."""
        if submission_id not in self._noted:
            self._write(submission_id, step, before)
        pass_on()
        self._lines[step] += 1

    def note(self, submission_id: str, step: str, position_bytes: int) -> None:
        """Record that all lines before the position are shown, at most every 5 s."""
        noted = self._noted.get(submission_id)
        due_s = self._written_at_s.get(submission_id, 0) + WRITE_EVERY_S
        if noted is not None and position_bytes != noted and self._clock_s() >= due_s:
            self._write(submission_id, step, Shown(bytes=position_bytes))

    def forget(self, submission_id: str) -> None:
        """Clear the position of an ended job. An instance cannot remove a key, so its value becomes empty."""
        key = _key(submission_id)
        if self._noted.pop(submission_id, None) is not None or self._instance.run_storage.get_cursor_values({key}):
            self._instance.run_storage.set_cursor_values({key: ""})
        self._written_at_s.pop(submission_id, None)

    def _write(self, submission_id: str, step: str, shown: Shown) -> None:
        """The lines that this run has shown until now are among the shown ones; later ones follow them."""
        value = f"{shown.bytes} {shown.lines_after} {self._lines[step]} {self._run_id}"
        self._instance.run_storage.set_cursor_values({_key(submission_id): value})
        self._noted[submission_id], self._written_at_s[submission_id] = shown.bytes, self._clock_s()

    def _lines_shown_by(self, run_id: str, step: str) -> int:
        """Number of lines of the step in the captured output of a run; 0 if that cannot be read."""
        manager, prefix = self._instance.compute_log_manager, output_line(step, "").encode()
        try:
            captured = self._instance.all_logs(run_id, of_type=dg.DagsterEventType.LOGS_CAPTURED)
            events = [entry.get_dagster_event().logs_captured_data for entry in captured]
            keys = [manager.build_log_key_for_run(run_id, event.file_key) for event in events]
            outputs = [manager.get_log_data(key).stdout or b"" for key in keys]
        except Exception as error:  # another manager's errors are of any kind; lines are then shown twice
            log.warning("the output of run %s cannot be read (%s); some lines may be shown again", run_id, error)
            return 0
        return sum(line.startswith(prefix) for output in outputs for line in output.split(b"\n"))


def _key(submission_id: str) -> str:
    return f"marin/log/{submission_id}"
