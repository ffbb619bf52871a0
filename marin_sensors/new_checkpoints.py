"""A sensor on a training under way: each checkpoint that it exports becomes a partition, and is evaluated.

    from marin_sensors.new_checkpoints import new_checkpoints

    scores = new_checkpoints(
        "nano_scores",
        "nano/checkpoints",                       # the training, with steps_per_hf_export
        partitions="nano_checkpoints",            # dynamic("nano_checkpoints") of the evaluations
        assets=["nano/checkpoint_evaluation"],
    )

The evaluation reads the training without waiting for it: see `default_checkpoint_evals`. Each checkpoint of a version
of the training is requested once, also if the daemon is killed at any moment. The scores are on one asset, a partition
for each step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from marin_resources.orchestrator.io_manager import output_of_asset
from marin_resources.orchestrator.store_resource import StoreResource
from marin_resources.storage.paths import join
from marin_resources.types.errors import MarinError
from marin_resources.types.output import Output
from marin_sensors.deliveries.completeness import Marked
from marin_sensors.deliveries.memory import Memory
from marin_sensors.deliveries.pattern import DELIVERY, DeliveryPattern
from marin_sensors.deliveries.tick import Cursor, ListingError, Taken, Watch, look
from marin_sensors.runs import lost_run_retries as lost
from marin_sensors.runs import requests as run_requests

EXPORTS = f"exports/{DELIVERY}/*"
"""Below the output of a training: see marin_assets/stages/train/exports.py."""
COMPLETE = "_SUCCESS"
RECHECK_S, BUDGET_S = 3600.0, 8.0
TRAINING = "marin/training_version"
"""Tag of a run: the version of the training whose checkpoint it evaluates."""


def new_checkpoints(
    name: str,
    training: str,
    *,
    partitions: str,
    assets: Sequence[str],
    every_s: int = 60,
    at_most: int = 20,
    start: bool = False,
) -> dg.SensorDefinition:
    """A sensor named `name` on the exports of the asset `training`, at its version in the code.

    training     key of the asset that trains. Its config has `steps_per_hf_export`
    partitions   the name of the dynamic set of the evaluations, one for each training: "step-0000100" is added to it
    assets       keys of the evaluations, which are materialized at the new partition
    every_s      seconds between two ticks
    at_most      checkpoints that one tick takes
    start        whether it runs without being switched on. Its runs cost what the evaluations cost

    Raises ValueError for no asset.
    """
    keys, trained = run_requests.keys_of(name, assets), dg.AssetKey(training.split("/"))

    @dg.sensor(
        name=name,
        asset_selection=dg.AssetSelection.assets(*keys),
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING if start else dg.DefaultSensorStatus.STOPPED,
        description=(
            f"Looks at the checkpoints that {training} exports, while it trains and after. Each complete one is added "
            f"to the set {partitions!r}, and {', '.join(assets)} are materialized for it."
        ),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if wrong := run_requests.misfit(context, keys, partitions) or _misfit(context, trained):
            return dg.SkipReason(wrong)
        assert context.repository_def is not None
        try:
            store = StoreResource().store()
            output = output_of_asset(context.repository_def.asset_graph, trained)
            memory = Memory(store.prefix, f"{name}-{output.version}")
            cursor = _cursor(context.cursor, output)
            watch = _watch(join(store.data_path(output), EXPORTS), at_most)
            partition_keys = context.instance.get_dynamic_partitions(partitions)
            tick = look(watch, memory, cursor, time.time(), partition_keys)
        except (MarinError, dg.Failure) as error:
            return dg.SkipReason(str(error))
        run_requests.log(context, tick)

        def request(taken: Taken) -> dg.RunRequest:
            return dg.RunRequest(
                run_key=f"{name}: {output.version}/{taken.key}",
                asset_selection=keys,
                partition_key=taken.key,
                tags={"marin/checkpoint": taken.delivery, TRAINING: output.version, **lost.tags_of(name)},
            )

        again = lost.request_again(context, name, partitions, keys, {TRAINING: output.version})
        requested = [*again, *map(request, tick.taken)]
        return run_requests.result_of(tick, _text(tick.cursor, output), partitions, keys, requested)

    return sensor


def _misfit(context: dg.SensorEvaluationContext, training: dg.AssetKey) -> str:
    """Why the training cannot be watched, in one sentence; empty if it can."""
    assert context.repository_def is not None
    if sentence := run_requests.unknown(context, training):
        return sentence
    if context.repository_def.asset_graph.get(training).partitions_def is not None:
        return (
            f"The training {training.to_user_string()!r} has partitions. Expected one without: make a step, an "
            "evaluation and a sensor for each training."
        )
    return ""


def _watch(path: str, at_most: int) -> Watch:
    return Watch(
        pattern=DeliveryPattern(path),
        rule=Marked(COMPLETE),
        revises=False,
        at_most=at_most,
        recheck_s=RECHECK_S,
        budget_s=BUDGET_S,
        expects_place=False,  # a training that has not begun has no folder
        noun="checkpoint",
    )


def _cursor(text: str | None, output: Output) -> Cursor:
    """The cursor of the last look; a new one for another version of the training. Raises ListingError."""
    if not text:
        return Cursor()
    try:
        fields: dict[str, Any] = json.loads(text)
        version, look = fields["version"], fields["look"]
    except (ValueError, KeyError, TypeError):
        raise ListingError(
            f"The cursor {text!r:.100} is none of this sensor. Reset it: checkpoints that were evaluated are reused."
        ) from None
    return Cursor.parse(look) if version == output.version else Cursor()


def _text(cursor: Cursor, output: Output) -> str:
    return json.dumps({"version": output.version, "look": cursor.text()})
