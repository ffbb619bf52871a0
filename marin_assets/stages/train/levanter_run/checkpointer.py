"""The checkpointer of a training: it waits for the metrics, and the run can wait for it.

A checkpoint begins after the evaluation of its step and after the metrics are saved, so a resumed run loses no metrics.
The last checkpoint is written in the background, and the run waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jax
from levanter.checkpoint import Checkpointer, CheckpointerConfig

from marin_assets.stages.train.checkpoints import outdated, remove_checkpoint
from marin_resources.step_api.progress import report_checkpoint

log = logging.getLogger(__name__)


@dataclass
class LateCheckpointerConfig(CheckpointerConfig):
    """Create a checkpointer for `add_hooks`. The trainer's own hook runs too early, so it gets a no-op."""

    keep_last: int | None = None
    keep_every: int | None = None

    def create(self, run_id: str) -> Any:
        if "created" in vars(self):  # `train_dpo` creates a second one, only to wait for it
            return NoCheckpointer()
        self.created: Checkpointer = super().create(run_id)
        save = self.created.save_checkpoint

        def save_after_metrics(*args: Any, step: int, commit_callback: Callable[[], None], **kwargs: Any) -> None:
            def committed() -> None:
                commit_callback()
                report_checkpoint(step)
                if self.keep_last is not None and jax.process_index() == 0:
                    for path in outdated(self.base_path, keep_last=self.keep_last, keep_every=self.keep_every):
                        self.created._rm_checkpoint(path)

            self.before_each()
            save(*args, step=step, commit_callback=committed, **kwargs)

        self.created.save_checkpoint = save_after_metrics  # type: ignore[method-assign]
        self.created._do_rm_checkpoint = _remove  # type: ignore[method-assign]
        return NoCheckpointer()

    def before_each(self) -> None:
        """Called before each checkpoint. `run_levanter` replaces it: Levanter copies fields, so it is not one."""


def _remove(path: str) -> None:
    """In Levanter's thread, which must live. What stays is incomplete, and the next attempt removes it."""
    try:
        remove_checkpoint(path)
    except Exception as error:  # any error of a store or its client: the training continues
        log.warning("the checkpoint %s cannot be removed now (%s: %s)", path, type(error).__name__, error)


class NoCheckpointer:
    def on_step(self, **state: Any) -> None: ...

    def wait_until_finished(self) -> None: ...


@contextmanager
def due_now(checkpointer: Checkpointer) -> Iterator[None]:
    """Let the next temporary checkpoint be due, while the block runs."""
    interval, checkpointer.save_interval = checkpointer.save_interval, timedelta(0)
    try:
        yield
    finally:
        checkpointer.save_interval = interval
