"""Publication of weights by a training for its samplers, once after each update that needs it; and what that costs.

Each is a file `weights/0000012.safetensors`, whole or absent, which is the record: an attempt that resumes behind it
samples with it, one that computes it again compares. With `weights_by="flight"` samplers get the weights from memory,
and the file is written beside the training; `settle` waits for it, before a checkpoint that relies on it.
"""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.weights.content import noted_digest, verified_digest
from marin_assets.stages.train.rl.weights.fetch import Source
from marin_resources.storage.files import exists, names_in, read_bytes, remove, write_bytes
from marin_resources.storage.paths import join

FOLDER = "weights"
DIGITS = 7
SUFFIX = ".safetensors"
JUDGED_STEPS, MUCH = 20, 0.05
"""Number of steps after which the log proposes Flight, if the usual share of a step for weights is above the second."""

log = logging.getLogger(__name__)


def weights_path(output_path: str, weights_step: int) -> str:
    return join(output_path, FOLDER, f"{weights_step:0{DIGITS}}{SUFFIX}")


@contextmanager
def opened_publication(config: TrainRlConfig, host: str) -> Iterator[Publication]:
    """The publication of a training, for the block. `host`: the address at which samplers reach this process."""
    with ThreadPoolExecutor(1, "weights") as writer:
        if config.weights_by != "flight" or config.samplers == 0:
            yield Publication(config, writer, None)
            return
        from marin_assets.stages.train.rl.weights.flight import WeightsServer

        with WeightsServer(host) as server:
            log.info("the weights are served at %s", server.url)
            yield Publication(config, writer, server)


class Publication:
    """Open it with `opened_publication`."""

    def __init__(self, config: TrainRlConfig, writer: ThreadPoolExecutor, server: Any) -> None:
        self._config, self._writer, self._server = config, writer, server
        self._sources: dict[int, Source] = {}
        self._writing: Future[None] | None = None
        self._seconds, self._bytes, self._lock = 0.0, 0, threading.Lock()
        self._by_file = server is None and config.samplers > 0
        self._shares: list[float] = []

    def publish(self, pack: Callable[[], bytearray], weights_step: int) -> None:
        """Publish the bytes that `pack` returns. Warns if an earlier attempt has published others."""
        began = time.monotonic()
        content, path = pack(), weights_path(self._config.output_path, weights_step)
        if exists(path) and read_bytes(path) != content:
            log.warning(
                "the weights after %d updates are others than an earlier attempt had: this host computes otherwise. "
                "Batches that it has sampled stay as they are, and their tokens are weighed by their likelihoods.",
                weights_step,
            )
        self._write(path, content)
        if self._server is not None:
            self._server.put(weights_step, content)
        served = self._server is not None
        self._sources[weights_step] = self._source(noted_digest(content), len(content), weights_step, served=served)
        self._spend(time.monotonic() - began, len(content))

    def source(self, weights_step: int) -> Source:
        """The place of weights that this attempt has published, or an earlier one. Raises TrainError if neither has."""
        if weights_step not in self._sources:
            path = weights_path(self._config.output_path, weights_step)
            try:
                content = read_bytes(path)
            except FileNotFoundError as error:
                raise TrainError(
                    f"Rollouts are to be sampled with the weights at {path!r}, which are missing. Compute the step "
                    "again from its beginning."
                ) from error
            digest = verified_digest(content, repr(path))
            self._sources[weights_step] = self._source(digest, len(content), weights_step, served=False)
        return self._sources[weights_step]

    def settle(self) -> None:
        """Wait until all files are written. Raises what their writing raised."""
        if self._writing is not None:
            began = time.monotonic()
            self._writing.result()
            self._writing = None
            self._spend(time.monotonic() - began, 0)

    def remove_before(self, weights_step: int) -> None:
        """Remove the weights of fewer updates."""
        self.settle()
        for name in names_in(folder := join(self._config.output_path, FOLDER)):
            if name.endswith(SUFFIX) and int(name.removesuffix(SUFFIX)) < weights_step:
                remove(join(folder, name))
        for older in [step for step in self._sources if step < weights_step]:
            del self._sources[older]
        if self._server is not None:
            self._server.remove_before(weights_step)

    def fetched(self, seconds: float, size: int) -> None:
        """Note what a sampler has spent to fetch weights."""
        self._spend(seconds / max(self._config.samplers, 1), size)

    def sync_metrics(self, seconds: float) -> dict[str, float]:
        """The metrics of a step that took `seconds`: the share for weights, to publish them and, a sampler, to
        fetch them; and the bytes that were published and fetched."""
        with self._lock:
            share, size = self._seconds / seconds, self._bytes
            self._seconds, self._bytes = 0.0, 0
        self._shares.append(share)
        if len(self._shares) == JUDGED_STEPS and (usual := statistics.median(self._shares)) > MUCH and self._by_file:
            log.info("weights take %.0f %% of a step: weights_by='flight' may be faster", 100 * usual)
        return {"rl/sync_share": share, "rl/sync_bytes": float(size)}

    def _write(self, path: str, content: bytearray) -> None:
        self.settle()
        if self._server is None:
            write_bytes(path, content)
        else:
            self._writing = self._writer.submit(write_bytes, path, content)

    def _source(self, digest: str, size: int, weights_step: int, *, served: bool) -> Source:
        return Source(
            weights_step=weights_step,
            digest=digest,
            size=size,
            path=weights_path(self._config.output_path, weights_step),
            **({"url": self._server.url, "token": self._server.token} if served else {}),
        )

    def _spend(self, seconds: float, size: int) -> None:
        with self._lock:  # threads of samplers note what they spend
            self._seconds += seconds
            self._bytes += size
