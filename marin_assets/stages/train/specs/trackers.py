"""Destinations of a training's metrics besides metrics.jsonl. They change nothing that is learnt, nor any version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.train.errors import TrainError

ONLINE, OFFLINE = "online", "offline"
API_KEY = "WANDB_API_KEY"
NOT_IN_A_NAME = frozenset("/\\#?%:")
MOST_OF_A_NAME, MOST_OF_A_TAG = 128, 64
"""Characters that Weights & Biases takes."""


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
    """Raise TrainError for a tracker of another type or twice, or what Weights & Biases would not take."""
    for tracker in trackers:
        if not isinstance(tracker, Tracker):
            raise TrainError(f"trackers has {tracker!r}, expected TensorBoard() or Wandb(project=…).")
        if isinstance(tracker, Wandb):
            _check_wandb(tracker)
    kinds = [type(tracker) for tracker in trackers]
    if len(set(kinds)) < len(kinds):
        raise TrainError(f"trackers is {trackers!r}, expected each kind once: both would write the same files.")


def _check_wandb(tracker: Wandb) -> None:
    if not tracker.project or tracker.mode not in (ONLINE, OFFLINE):
        raise TrainError(
            f"trackers has {tracker!r}, expected the name of a project, and mode {ONLINE!r} or {OFFLINE!r}."
        )
    for field, name in (("project", tracker.project), ("entity", tracker.entity)):
        if name is not None and (not name.strip() or len(name) > MOST_OF_A_NAME or set(name) & NOT_IN_A_NAME):
            raise TrainError(
                f"The {field} of Wandb is {name!r}, expected 1 to {MOST_OF_A_NAME} characters without any of "
                f"{' '.join(sorted(NOT_IN_A_NAME))}."
            )
    if tracker.name is not None and not tracker.name.strip():
        raise TrainError(f"The name of Wandb is {tracker.name!r}, expected a text, or None.")
    for tag in tracker.tags:
        if not 0 < len(tag) <= MOST_OF_A_TAG:
            raise TrainError(f"The tags of Wandb have {tag!r}, expected 1 to {MOST_OF_A_TAG} characters each.")


def env_of(trackers: Any) -> tuple[str, ...]:
    """The environment variables that a step with these trackers may see. What are none is refused with the step."""
    given = trackers if isinstance(trackers, Sequence) else ()
    return (API_KEY,) if any(isinstance(tracker, Wandb) and tracker.mode == ONLINE for tracker in given) else ()
