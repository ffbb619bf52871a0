"""The trackers of a training, which follow its metrics file. After a resumption no step is there twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.metrics.tensorboard import TensorBoardLog
from marin_assets.stages.train.metrics.tracker_log import TrackerLog
from marin_assets.stages.train.metrics.wandb_run import WandbLog
from marin_assets.stages.train.specs.trackers import TensorBoard, Tracker


def open_trackers(trackers: Iterable[Tracker], output_path: str, rows: Sequence[Row]) -> list[TrackerLog]:
    """Open them, with the rows that an earlier attempt has left."""
    return [
        TensorBoardLog(output_path, rows) if isinstance(each, TensorBoard) else WandbLog(each, output_path, rows)
        for each in trackers
    ]
