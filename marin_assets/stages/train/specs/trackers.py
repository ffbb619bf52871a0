"""Where the metrics of a training go besides metrics.jsonl. It decides nothing that is learnt: it is in no version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError

ONLINE, OFFLINE = "online", "offline"
API_KEY = "WANDB_API_KEY"


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
