"""The metrics of a training run: one JSON object a step, in a file that a resumed run continues.

    {"step": 12, "train/loss": 5.1, "optim/learning_rate": 0.007, "throughput/tokens_per_second": 33000.0, …}
    {"step": 14, …, "mixture/weight/<member>": 0.3, "mixture/phase": 0}      with a mixture
    {"step": 100, …, "eval/loss": 4.6, "eval/<component>/loss": 4.4}

Names and steps are Levanter's: `step` counts from 0, and checkpoint `step-12` is the state after it. Step -1 is the
untrained model. Levanter logs no loss for steps 0 and 1. A step has at most one row, even after a kill.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from marin_resources.storage.files import exists, read_bytes, write_bytes
from marin_resources.storage.paths import is_local

UNTRAINED_STEP = -1
KEPT = (
    "train/",
    "eval/",
    "optim/",
    "grad/norm/total",
    "mixture/",
    "rl/",
    "throughput/tokens_per_second",
    "throughput/duration",
    "throughput/loading_time",
    "throughput/hook_time",
    "throughput/total_tokens",
    "throughput/total_gflops",
    "throughput/mfu",
)
PEAK = "throughput/theoretical_flops"
"""Operations a second at the peak of all devices of the training, where it is known. Of a step, in its row."""
TRAIN_ONLY = ("train/", "throughput/", "grad/", "not_finite/")
TIMES = frozenset({"throughput/loading_time", "throughput/hook_time"})
"""Logged after the loss of their step. They begin no row: Levanter logs them for steps 0 and 1 too."""
NOT_FINITE = "not_finite/"
"""Before the name of a metric that was NaN or infinite, which JSON cannot hold: its row has 1 there."""
UPLOAD_EVERY_S = 60
LOG_EVERY_S = 5

Row = dict[str, Any]
log = logging.getLogger(__name__)


class Follower(Protocol):
    """Is given the metrics as they come, and what is to be done when the file is saved or closed."""

    def add(self, step: int, numbers: Mapping[str, float]) -> None: ...

    def save(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ParameterCounts:
    """Numbers of a model: of all parameters, and of those that are trained."""

    total: int
    trained: int


class MetricsFile:
    """Rows by step. On a local disk each row is written at once; in a bucket, the file is uploaded once a minute, and
    by `save`. Call `save` before each checkpoint, so that a run resumed from it has the rows up to its step."""

    def __init__(self, path: str, *, keep_up_to: int | None = None) -> None:
        """Open the file. Keep an earlier run's rows up to and including step `keep_up_to`, and drop the others."""
        self.path, self.followers = path, list[Follower]()
        self.rows = [row for row in read_metrics(path) if keep_up_to is not None and row["step"] <= keep_up_to]
        self._upload()
        self._file = open(path, "r+b", buffering=0) if is_local(path) else None  # noqa: SIM115  (a run's lifetime)
        self._last_row_at = self._end_before_last_row()

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add to the row of the last step, or begin the next row. A metric keeps the first value of a step."""
        if not self.rows or self.rows[-1]["step"] != step:
            self.rows.append({"step": step})
            if self._file:
                self._last_row_at = self._file.seek(0, 2)
        row = self.rows[-1]
        if new := {name: value for name, value in metrics.items() if name not in row}:
            row.update(new)
            self._save_row()
            for follower in self.followers:
                follower.add(step, new)

    def save(self) -> None:
        """Upload the rows so far, so that a resumed run finds them. On a local disk they are in the file already."""
        if not self._file:
            self._upload()
        for follower in self.followers:
            follower.save()

    def close(self) -> None:
        self.save()
        if self._file:
            self._file.close()
        for follower in self.followers:
            follower.close()

    def _save_row(self) -> None:
        if self._file:
            self._file.seek(self._last_row_at)
            self._file.write(_line(self.rows[-1]))
            self._file.truncate()
        elif time.monotonic() - self._uploaded > UPLOAD_EVERY_S:
            self._upload()

    def _upload(self) -> None:
        write_bytes(self.path, b"".join(map(_line, self.rows)))
        self._uploaded = time.monotonic()

    def _end_before_last_row(self) -> int:
        return sum(len(_line(row)) for row in self.rows[:-1])


class NoMetrics:
    """In the place of a MetricsFile, on a host that writes none."""

    def add(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def save(self) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Log every 5 s: step, loss, tokens a second, time left."""

    def __init__(self, steps: int, tokens_per_step: int) -> None:
        self.steps, self.tokens_per_step = steps, tokens_per_step
        self.first: tuple[int, float] | None = None
        self.last, self.logged_at = UNTRAINED_STEP, 0.0

    def advance(self, step: int, loss: float) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first, self.last, self.logged_at = (step, now), step, now
        is_due = now - self.logged_at >= LOG_EVERY_S or step + 1 == self.steps
        if step == self.last or not is_due:  # Levanter reports the last step twice
            return
        self.last, self.logged_at = step, now
        rate = (step - self.first[0]) / max(now - self.first[1], 1e-9)
        left_s = (self.steps - step - 1) / rate
        tokens = rate * self.tokens_per_step
        log.info("step %d of %d, loss %.3f, %.0f tokens/s, %.0f s left", step + 1, self.steps, loss, tokens, left_s)


def read_metrics(path: str) -> list[Row]:
    """Return the rows of a metrics file, by step; none if it does not exist. A line truncated by a kill is left out."""
    if not exists(path):
        return []
    *lines, _truncated = read_bytes(path).split(b"\n")
    return [json.loads(line) for line in lines]


def numbers_to_keep(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics to keep, as floats. One that is NaN or infinite is 1 under NOT_FINITE and its name."""
    numbers = {n: float(value) for n, value in metrics.items() if n.startswith(KEPT) and _is_scalar(value)}
    return {n if math.isfinite(v) else f"{NOT_FINITE}{n}": v if math.isfinite(v) else 1.0 for n, v in numbers.items()}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float) or getattr(value, "ndim", None) == 0


def _line(row: Row) -> bytes:
    return json.dumps(row).encode() + b"\n"
