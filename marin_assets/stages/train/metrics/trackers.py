"""The trackers of a training, which follow its metrics file. After a resumption they have no step twice.

A training does not depend on them: the error of one is a warning, and that tracker gets no more.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.metrics.tracker_log import TrackerLog, copy_folder, feed
from marin_assets.stages.train.metrics.wandb_run import WandbLog
from marin_assets.stages.train.specs.trackers import TensorBoard, Tracker
from marin_resources.storage.files import exists, remove_folder
from marin_resources.storage.paths import join

FOLDER = "tensorboard"
SAVE_EVERY_S = 60

log = logging.getLogger(__name__)


class GuardedLog:
    """A tracker whose errors do not reach the training."""

    def __init__(self, spec: Tracker, tracker: TrackerLog) -> None:
        self._name, self._tracker, self._works = type(spec).__name__, tracker, True
        self.link = tracker.link

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        if self._works:
            self._guard(lambda: self._tracker.add(step, numbers))

    def save(self) -> None:
        if self._works:
            self._guard(self._tracker.save)

    def close(self) -> None:
        """Also after an error: what it has until then may be kept."""
        self._guard(self._tracker.close)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # of a library, a service or a store: the metrics are in metrics.jsonl
            self._works = False
            _warn(self._name, error)


def open_trackers(trackers: Iterable[Tracker], output_path: str, rows: Sequence[Row]) -> list[TrackerLog]:
    """Open them, with the rows that an earlier attempt has left. One that cannot be opened is left out."""
    opened: list[TrackerLog] = []
    for spec in trackers:
        try:
            opened.append(GuardedLog(spec, _open(spec, output_path, rows)))
        except Exception as error:  # as above
            _warn(type(spec).__name__, error)
    return opened


def _open(spec: Tracker, output_path: str, rows: Sequence[Row]) -> TrackerLog:
    if isinstance(spec, TensorBoard):
        return TensorBoardLog(output_path, rows)
    return WandbLog(spec, output_path, rows)


def _warn(name: str, error: Exception) -> None:
    log.warning(
        "the tracker %s failed (%s: %s); the training continues without it, and its metrics are in metrics.jsonl",
        name,
        type(error).__name__,
        error,
    )


class TensorBoardLog:
    """Event files, which each attempt writes from the rows. Steps are the numbers of finished ones, as in plots."""

    def __init__(self, output_path: str, rows: Sequence[Row]) -> None:
        from tensorboardX import SummaryWriter  # 0.5 s to import

        self._folder = join(output_path, FOLDER)
        if exists(self._folder):
            remove_folder(self._folder)
        self._local = tempfile.TemporaryDirectory(prefix="marin-tensorboard-")
        self._writer = SummaryWriter(self._local.name, flush_secs=SAVE_EVERY_S)
        self.link = ("tensorboard", f"tensorboard --logdir {self._folder}")
        self._saved_s = time.monotonic()
        feed(self, rows)
        self.save()

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step + 1)
        if time.monotonic() - self._saved_s > SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        self._writer.flush()
        copy_folder(self._local.name, self._folder)
        self._saved_s = time.monotonic()

    def close(self) -> None:
        self._writer.close()
        copy_folder(self._local.name, self._folder)
        self._local.cleanup()
