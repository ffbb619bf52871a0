"""TensorBoard's event files of a training, below its output path."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.metrics.tracker_log import copy_folder, feed
from marin_resources.storage.files import exists, remove_folder
from marin_resources.storage.paths import join

FOLDER = "tensorboard"
SAVE_EVERY_S = 60


class TensorBoardLog:
    """Event files, written anew from the rows by each attempt. Steps are the numbers of finished ones, as in plots."""

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
