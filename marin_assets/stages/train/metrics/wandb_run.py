"""A training's run of Weights & Biases: in the service, or in files below the output path for `wandb sync`."""

from __future__ import annotations

import hashlib
import logging
import os
import posixpath
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from marin_assets.stages.train.metrics.metrics import Row
from marin_assets.stages.train.metrics.tracker_log import copy_folder, feed
from marin_assets.stages.train.specs.trackers import API_KEY, OFFLINE, ONLINE, Wandb
from marin_resources.storage.files import exists, remove_folder
from marin_resources.storage.paths import join

FOLDER = "wandb"
INIT_TIMEOUT_S, FINISH_TIMEOUT_S = 60, 600
NOT_IN_AN_ID = re.compile(r"[:;,#?/']")
"""A step of a sweep over two fields has a comma in its name."""
MOST_OF_AN_ID = 128

log = logging.getLogger(__name__)


class WandbLog:
    """The service has the steps of earlier attempts. Files are written again from the rows, and copied at the end."""

    def __init__(self, spec: Wandb, output_path: str, rows: Sequence[Row]) -> None:
        self._folder = join(output_path, FOLDER)
        self._local = tempfile.TemporaryDirectory(prefix="marin-wandb-")
        self._run = _start(spec, output_path, self._local.name)
        self.link = ("wandb", self._run.url or f"wandb sync {self._folder}/offline-run-*")
        if self._run.url is None:
            if exists(self._folder):
                remove_folder(self._folder)
            feed(self, rows)

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step + 1)

    def save(self) -> None:
        """W&B keeps what it has not sent in files of its own, which `close` copies."""

    def close(self) -> None:
        self._run.finish()
        copy_folder(os.path.join(self._local.name, "wandb"), self._folder, only=f"{OFFLINE}-run-")
        self._local.cleanup()


def run_id(output_path: str) -> str:
    """The id of an output's run, the same for each of its attempts, in letters that W&B takes."""
    digest = hashlib.sha256(output_path.encode()).hexdigest()[:8]
    name = NOT_IN_AN_ID.sub("_", posixpath.basename(output_path.rstrip("/"))).lstrip()
    return f"{name[: MOST_OF_AN_ID - len(digest) - 1]}-{digest}"


def _start(spec: Wandb, output_path: str, folder: str) -> Any:
    import wandb  # 1 s to import

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
            settings=wandb.Settings(
                silent=True,
                console="off",
                init_timeout=INIT_TIMEOUT_S,
                finish_timeout=FINISH_TIMEOUT_S,  # by default it waits for ever for a service that has gone
                finish_timeout_raises=True,
            ),
        )

    if spec.mode == ONLINE and API_KEY not in os.environ:
        log.warning("%s is not set on this worker, so the W&B run is kept offline, below the output", API_KEY)
    elif spec.mode == ONLINE:
        try:
            return start(ONLINE)
        except Exception as error:  # of W&B, pydantic, requests, …: a training must not wait for another's service
            log.warning("W&B does not answer (%s), so the run is kept offline, below the output", error)
            wandb.teardown()  # or its service holds the id of the run
    return start(OFFLINE)
