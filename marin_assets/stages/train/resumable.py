"""A run of Levanter's that resumes: the common work of trainings around it, whatever their loss is.

Leftovers of a killed attempt are removed, the metrics continue after the last checkpoint, the tokenizer is in a local
folder, and at the end the metrics' rows and the plots are written.
"""

from __future__ import annotations

import itertools
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marin_assets.stages.train.checkpoints import DAMAGED, last_checkpoint_step, remove_unfinished
from marin_assets.stages.train.config import TrainLmConfig
from marin_assets.stages.train.errors import DamagedCheckpointError, TrainError
from marin_assets.stages.train.exports import remove_unfinished_exports
from marin_assets.stages.train.inputs.inherited_files import chat_template_of_start
from marin_assets.stages.train.inputs.starting_point import StartingPoint, find_start
from marin_assets.stages.train.inputs.token_inputs import set_chat_template, stage_tokenizer
from marin_assets.stages.train.metrics.health import health_of
from marin_assets.stages.train.metrics.loss_plot import plot_curves, plot_losses
from marin_assets.stages.train.metrics.metrics import MetricsFile, NoMetrics, ParameterCounts, Row, read_metrics
from marin_assets.stages.train.metrics.tracker_log import TrackerLog
from marin_assets.stages.train.metrics.trackers import open_trackers
from marin_resources.step_api.hosts import host_count, host_index
from marin_resources.storage.files import exists
from marin_resources.storage.paths import join

CURVE_POINTS = 40
EXPORT, PLOT, CURVES_PLOT = "hf", "plots/loss.png", "plots/curves.png"
CURVES = {
    "gradient_norm_curve": "grad/norm/total",
    "learning_rate_curve": "optim/learning_rate",
}
LAST_STEPS = 10

CHECKPOINTS, METRICS = "checkpoints", "metrics.jsonl"

log = logging.getLogger(__name__)


def run_resumably(
    config: TrainLmConfig,
    run_levanter: Callable[..., ParameterCounts],
    *,
    family: str,
    chat_template: str | None = None,
    validation_loss: str,
) -> FinishedRun | None:
    """Train and export with `run_levanter` of `levanter_run`, on this host; None on other hosts than the first.

    `family` is the model's. The exported tokenizer has the `chat_template`, or without one that of the start.
    `validation_loss` is the metric of the exported model. A damaged checkpoint of its own is removed, and the one
    before is taken; on several hosts by the next attempt, as the others already wait for this one.
    """
    checkpoints = join(config.output_path, CHECKPOINTS)
    while True:
        try:
            return _run_once(
                config, run_levanter, family=family, chat_template=chat_template, validation_loss=validation_loss
            )
        except DamagedCheckpointError as error:
            if not exists(join(error.path, DAMAGED)) or not error.path.startswith(f"{checkpoints}/"):
                raise
            if host_count() > 1:
                raise TrainError(
                    f"The checkpoint at {error.path!r} is damaged: {error.reason}. Run this again: the next attempt "
                    "takes the one before."
                ) from error
            log.error("the checkpoint %s is damaged (%s), so the one before is taken", error.path, error.reason)


def _run_once(
    config: TrainLmConfig,
    run_levanter: Callable[..., ParameterCounts],
    *,
    family: str,
    chat_template: str | None,
    validation_loss: str,
) -> FinishedRun | None:
    from marin_assets.stages.train.levanter_run import all_hosts  # jax and Levanter take 3 s to import
    from marin_assets.stages.train.levanter_run.devices.peaks import devices_of_jax

    checkpoints = join(config.output_path, CHECKPOINTS)
    all_hosts.join_hosts()

    def remove_leftovers() -> None:
        remove_unfinished(checkpoints)
        remove_unfinished_exports(config.output_path)

    all_hosts.on_host_0(remove_leftovers)
    done = last_checkpoint_step(checkpoints)
    if done is not None:
        log.info("resuming from the checkpoint of step %d", done)

    def find() -> StartingPoint | None:
        return find_start(config.start, config.output_path, config.tokenizer_path, is_resumed=done is not None)

    all_hosts.on_host_0(find)  # it chooses for all
    start = find()
    first_step = 0 if start is None else start.first_step
    longer = replace(config, num_train_steps=first_step + config.num_train_steps)
    metrics_path = join(config.output_path, METRICS)
    metrics = MetricsFile(metrics_path, keep_up_to=done) if host_index() == 0 else NoMetrics()
    trackers: list[TrackerLog] = []
    if isinstance(metrics, MetricsFile):
        trackers = open_trackers(config.trackers, config.output_path, metrics.rows)
        metrics.followers += trackers
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="marin-train-") as folder:
            tokenizer = stage_tokenizer(config.tokenizer_path, join(folder, "tokenizer"), family)
            template = chat_template or chat_template_of_start(config.start, config.tokenizer_path)
            if template is not None:
                set_chat_template(tokenizer, template)
            parameters = run_levanter(
                longer,
                metrics,
                tokenizer=tokenizer,
                log_dir=folder,
                resumed_at=done,
                start=start,
                validation_loss=validation_loss,
            )
    finally:
        metrics.close()
    log.info("trained and exported in %.1f s", time.monotonic() - started)
    if host_index() > 0:
        return None
    remove_unfinished(checkpoints, also_temporary=True)
    rows = read_metrics(metrics_path)
    plot_losses(rows, join(config.output_path, PLOT), validation_loss=validation_loss)
    plot_curves(rows, join(config.output_path, CURVES_PLOT))
    links = dict(tracker.link for tracker in trackers)
    return FinishedRun(
        rows=rows,
        parameters=parameters,
        resumed_from_step=done,
        links=links,
        start=start,
        validation_loss=validation_loss,
        devices=devices_of_jax(),
    )


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    rows: list[Row]
    parameters: ParameterCounts
    resumed_from_step: int | None
    """The checkpoint's step, if this attempt began with one."""
    start: StartingPoint | None
    """The starting point; None for random weights."""
    links: Mapping[str, str]
    """Tracker -> where a person finds the run."""
    validation_loss: str
    """The metric that is the validation loss of the exported model."""
    devices: Mapping[str, Any]
    """Those of this attempt, as `devices_of_jax` has them."""

    @property
    def first_step(self) -> int:
        """Number of the first step that was trained; above 0 if an optimizer's state was continued."""
        return 0 if self.start is None else self.start.first_step


def result_of(run: FinishedRun) -> dict[str, Any]:
    """Return tokens_per_second (median over the steps), train_loss_end (mean of the last 10 losses that are finite, or
    None), loss_curve, validation_curve and CURVES (means over 40 equal parts of the steps), model_path, plots, links
    (of the trackers), flops (of the whole training, by Levanter's count of the model), mfu (median share of the
    devices' peak, where that is known), devices (kind, count, peak_flops), the numbers of `health_of`,
    resumed_from_step, and with a start started_from (path, step, optimizer_state).
    """
    losses = _values(run.rows, "train/loss")
    return {
        "tokens_per_second": statistics.median(_values(run.rows, "throughput/tokens_per_second")),
        "train_loss_end": statistics.fmean(losses[-LAST_STEPS:]) if losses else None,
        "loss_curve": curve_of(_values(run.rows, "train/loss")),
        "validation_curve": curve_of(_values(run.rows, run.validation_loss)),
        **{name: curve_of(_values(run.rows, metric)) for name, metric in CURVES.items()},
        "model_path": EXPORT,
        "plots": [PLOT, CURVES_PLOT],
        "links": dict(run.links),
        **_flops(run.rows),
        "devices": dict(run.devices),
        **health_of(run.rows, validation=run.validation_loss.removesuffix("loss")),
        "resumed_from_step": run.resumed_from_step,
        **({} if run.start is None else {"started_from": run.start.describe()}),
    }


def _values(rows: Sequence[Row], metric: str) -> list[float]:
    return [row[metric] for row in rows if metric in row]


def _flops(rows: Sequence[Row]) -> dict[str, float]:
    total, shares = _values(rows, "throughput/total_gflops"), _values(rows, "throughput/mfu")
    flops = {"flops": total[-1] * 1e9} if total else {}
    return flops | ({"mfu": round(statistics.median(shares) / 100, 4)} if shares else {})


def curve_of(losses: list[float]) -> list[float]:
    """The means of CURVE_POINTS equal parts, or all losses if they are fewer."""
    parts = min(CURVE_POINTS, len(losses))
    edges = [round(i * len(losses) / parts) for i in range(parts + 1)] if parts else []
    return [round(statistics.fmean(losses[a:b]), 4) for a, b in itertools.pairwise(edges)]
