"""Where the metrics of a training go besides metrics.jsonl: TensorBoard, and Weights & Biases.

They are fed from the rows of `metrics.py`. A run that resumes feeds them from its checkpoint on, so no step is there
twice. None of them decides what is trained, so they are in no version.
"""

from __future__ import annotations

import hashlib
import logging
import os
import posixpath
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.metrics import Follower, Row
from marin_resources.storage.files import exists, remove_folder, write_bytes
from marin_resources.storage.paths import join

ONLINE, OFFLINE = "online", "offline"
API_KEY = "WANDB_API_KEY"
TENSORBOARD_FOLDER, WANDB_FOLDER = "tensorboard", "wandb"
SAVE_EVERY_S = 60
INIT_TIMEOUT_S = 60

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TensorBoard:
    """Event files in `tensorboard/` below the output path: `tensorboard --logdir <output>/tensorboard`."""


@dataclass(frozen=True, kw_only=True)
class Wandb:
    """A run of Weights & Biases, whose id follows from the output path: an attempt that resumes continues it."""

    project: str
    entity: str | None = None
    name: str | None = None
    """Shown to people; None: the last part of the output path."""
    tags: tuple[str, ...] = ()
    mode: str = ONLINE
    """ "online", with WANDB_API_KEY on the worker, or "offline": files in `wandb/` below the output path, for
    `wandb sync`. A service that does not answer at the start makes an online run an offline one."""


Tracker = TensorBoard | Wandb


class TrackerLog(Follower, Protocol):
    """One tracker of a run."""

    link: tuple[str, str]
    """The tracker's name, and where a person finds the run: a URL, or a command."""


def check_trackers(trackers: Sequence[Any]) -> None:
    """Raise TrainError for a tracker of another type, or a W&B run without a project or of another mode."""
    for tracker in trackers:
        if not isinstance(tracker, Tracker):
            raise TrainError(f"trackers has {tracker!r}, expected TensorBoard() or Wandb(project=…).")
        if isinstance(tracker, Wandb) and (not tracker.project or tracker.mode not in (ONLINE, OFFLINE)):
            raise TrainError(
                f"trackers has {tracker!r}, expected the name of a project, and mode {ONLINE!r} or {OFFLINE!r}."
            )


def env_of(trackers: Iterable[Tracker]) -> tuple[str, ...]:
    """The environment variables that a step with these trackers may see."""
    return (API_KEY,) if any(isinstance(each, Wandb) and each.mode == ONLINE for each in trackers) else ()


def open_trackers(trackers: Iterable[Tracker], output_path: str, rows: Sequence[Row]) -> list[TrackerLog]:
    """Open them, with the rows that an earlier attempt has left."""
    return [
        TensorBoardLog(output_path, rows) if isinstance(each, TensorBoard) else WandbLog(each, output_path)
        for each in trackers
    ]


class TensorBoardLog:
    """Event files, written anew from the rows by each attempt. Steps are the numbers of finished ones, as in plots."""

    def __init__(self, output_path: str, rows: Sequence[Row]) -> None:
        from tensorboardX import SummaryWriter  # 0.5 s to import

        self._folder = join(output_path, TENSORBOARD_FOLDER)
        if exists(self._folder):
            remove_folder(self._folder)
        self._local = tempfile.TemporaryDirectory(prefix="marin-tensorboard-")
        self._writer = SummaryWriter(self._local.name, flush_secs=SAVE_EVERY_S)
        self.link = ("tensorboard", f"tensorboard --logdir {self._folder}")
        self._saved_s = time.monotonic()
        for row in rows:
            self.add(row["step"], {name: value for name, value in row.items() if name != "step"})
        self.save()

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step + 1)
        if time.monotonic() - self._saved_s > SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        self._writer.flush()
        _copy(self._local.name, self._folder)
        self._saved_s = time.monotonic()

    def close(self) -> None:
        self._writer.close()
        _copy(self._local.name, self._folder)
        self._local.cleanup()


class WandbLog:
    """A run of W&B. It refuses a step before its last one, so what an attempt computes again is not there twice."""

    def __init__(self, spec: Wandb, output_path: str) -> None:
        self._folder = join(output_path, WANDB_FOLDER)
        self._local = tempfile.TemporaryDirectory(prefix="marin-wandb-")
        self._run = _start(spec, output_path, self._local.name)
        offline = f"wandb sync {self._folder}/offline-run-*"
        self.link = ("wandb", self._run.url or offline)

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step + 1)

    def save(self) -> None:
        """W&B keeps what it has not sent in files of its own, which `close` copies."""

    def close(self) -> None:
        self._run.finish()
        _copy(os.path.join(self._local.name, "wandb"), self._folder, only=f"{OFFLINE}-run-")
        self._local.cleanup()


def run_id(output_path: str) -> str:
    """The id of an output's run, the same for each of its attempts."""
    digest = hashlib.sha256(output_path.encode()).hexdigest()[:8]
    return f"{posixpath.basename(output_path.rstrip('/'))}-{digest}"


def _start(spec: Wandb, output_path: str, folder: str) -> Any:
    import wandb  # 1 s to import
    from wandb.errors import Error

    def start(mode: Any) -> Any:
        return wandb.init(
            project=spec.project,
            entity=spec.entity,
            name=spec.name or posixpath.basename(output_path.rstrip("/")),
            tags=list(spec.tags),
            id=run_id(output_path),
            resume="allow",
            mode=mode,
            dir=folder,
            settings=wandb.Settings(silent=True, console="off", init_timeout=INIT_TIMEOUT_S),
        )

    if spec.mode == ONLINE and API_KEY not in os.environ:
        log.warning("%s is not set on this worker, so the W&B run is kept offline, below the output", API_KEY)
    elif spec.mode == ONLINE:
        try:
            return start(ONLINE)
        except Error as error:  # a training must not wait for another's service
            log.warning("W&B does not answer (%s), so the run is kept offline, below the output", error)
            wandb.teardown()  # or its service holds the id of the run
    return start(OFFLINE)


def _copy(local: str, folder: str, only: str = "") -> None:
    """Copy the files below a local folder that are in folders whose name begins with `only`."""
    root = Path(local)
    for file in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        name = file.relative_to(root).as_posix()
        if name.startswith(only):
            write_bytes(join(folder, name), file.read_bytes())
